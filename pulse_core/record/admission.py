"""Which drafts from outside may be recorded, by their kind: the checks of the core and of its capabilities.

An effect is checked by the gate itself, with the executor that would carry it out.
"""

from collections.abc import Mapping
from dataclasses import replace

from pulse_core.capability import Check
from pulse_core.composition import ADMITS
from pulse_core.model.errors import Refused, UnknownName
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Effect, EffectCancelRequested, ProcessStartRequested, ProcessStopRequested
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings


def require_guarded_process(draft: Draft, state: State, settings: Settings) -> None:
    """Refuse a subject that is no guarded process."""
    names = [process.name for process in settings.process]
    if draft.subject not in names:
        raise UnknownName("guarded process", draft.subject, names)


def require_open_effect(draft: Draft, state: State, settings: Settings) -> None:
    """Refuse a subject that is no open effect."""
    if draft.subject not in state.effects.open:
        raise Refused(f"no open effect {draft.subject!r}; see: upulse effect list")


CHECKS: Mapping[str, Check] = {
    ProcessStopRequested.kind: require_guarded_process,
    ProcessStartRequested.kind: require_guarded_process,
    EffectCancelRequested.kind: require_open_effect,
    **ADMITS,
}
"""By kind, the check that a draft from outside must pass; other kinds need the caller's role alone."""


def fill_defaults(draft: Draft, settings: Settings) -> Draft:
    """The draft with what only the writer can fill in: an effect's key as its subject, the expiry of a stop."""
    match draft.payload:
        case Effect(key=key):
            return replace(draft, subject=key, data="")
        case ProcessStopRequested(expires_us=None) as stop:
            payload = stop.model_copy(update={"expires_us": settings.intent.expires})
            return replace(draft, payload=payload, data="")
    return draft
