"""The check of a silence that a person adds, from wherever it comes."""

from pulse_core.model.durations import UNITS
from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft
from pulse_core.model.glob import glob_fault
from pulse_core.model.payload import Role
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings
from pulse_core.silences.events import SilenceAdded
from pulse_core.silences.projection import SILENCES
from pulse_core.silences.rule import MOST

LONGEST_DAYS = 30
"""Nobody would remember a longer one."""


def check_silence(draft: Draft, role: Role, state: State, settings: Settings) -> None:
    """Refuse a silence that can match nothing, holds for too long, or is one more than count."""
    assert isinstance(draft.payload, SilenceAdded)
    assert draft.moment is not None
    if fault := glob_fault(draft.subject):
        raise Refused(f"the pattern of a silence is no good: {fault}")
    if draft.payload.expires_us > LONGEST_DAYS * UNITS["d"]:
        raise Refused(
            f"a silence lasts at most {LONGEST_DAYS}d; what is to be held back again and again is a [[silence]] "
            "of the settings"
        )
    if len(state.of(SILENCES).holding(draft.moment)) >= MOST:
        raise Refused(f"{MOST} silences hold already; remove some first: upulse silence list")
