"""The check of a silence that a person adds, from wherever it comes."""

from pulse_core.model.durations import UNITS
from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft
from pulse_core.model.glob import glob_fault
from pulse_core.model.payload import Role
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings
from pulse_core.silences.events import SilenceAdded

LONGEST_DAYS = 30
"""Nobody would remember a longer one."""


def check_silence(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse a silence that can match nothing, or holds for too long."""
    assert isinstance(draft.payload, SilenceAdded)
    if fault := glob_fault(draft.subject):
        raise Refused(f"the pattern of a silence is no good: {fault}")
    if draft.payload.expires_us > LONGEST_DAYS * UNITS["d"]:
        raise Refused(
            f"a silence lasts at most {LONGEST_DAYS}d; what is to be held back again and again is a [[silence]] "
            "of the settings"
        )
