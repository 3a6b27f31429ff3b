"""The capability of runs that must notice guidance."""

from pulse_core.capability import Capability
from pulse_core.guided_runs.rules import SETTINGS, hold_unguided_runs

CAPABILITY = Capability(
    "guided_runs", rules=(hold_unguided_runs,), own_topics=frozenset({"guided-run"}), settings=(SETTINGS,)
)
