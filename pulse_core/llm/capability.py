"""The capability of LLM endpoints."""

import re
from collections.abc import Sequence

from pulse_core.capability import Capability, SurvivalRule, WatcherContext
from pulse_core.llm.endpoint import PREFIX
from pulse_core.llm.rule import llm_watchdog, seen
from pulse_core.llm.settings import ENDPOINTS
from pulse_core.ports.watcher import Watcher


def watchers(context: WatcherContext) -> Sequence[Watcher]:
    """The watcher of all endpoints; without any it is idle."""
    from pulse_core.llm.watcher import Llm  # it needs a loop, which the command line starts quicker without

    window = context.window
    return (Llm(context.prober, context.clock, context.settings, context.state, lambda: window(Llm.key)),)


CAPABILITY = Capability(
    "llm",
    # Inside of the rules that see to processes and the machine, which come first, and outside of the network's.
    survival_rules=(SurvivalRule(llm_watchdog, inside_of="resource_guard"),),
    topics=frozenset({PREFIX.rstrip(":")}),
    explains={PREFIX: re.compile(r"\bllm\b|litellm|completions?\b", re.IGNORECASE)},
    settings=(ENDPOINTS,),
    watchers=watchers,
    seen=seen,
)
