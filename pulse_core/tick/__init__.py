"""The tick: what is known now becomes a snapshot, the onion folds it, and the resulting effects are recorded.

It never waits for an executor, and nothing inside the onion can delay the survival rules' own fold.
"""

from pulse_core.tick.rule_folds import InnerFold, RuleFolds, Submit
from pulse_core.tick.ticker import Sources, Stores, Ticker, Waker

__all__ = ["InnerFold", "RuleFolds", "Sources", "Stores", "Submit", "Ticker", "Waker"]
