"""The capability of runs that must notice guidance."""

from pulse_core.capability import Capability
from pulse_core.guided_runs.rules import hold_unguided_runs
from pulse_core.guided_runs.settings import SETTINGS

CAPABILITY = Capability("guided_runs", rules=(hold_unguided_runs,), settings=(SETTINGS,))
