"""Silences for people: which hold now, which come again, and what one holds back, or would."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pulse_core.capability import FoldWithout
from pulse_core.model.durations import format_duration
from pulse_core.model.errors import PulseError, hint
from pulse_core.model.glob import glob_matches
from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND, Moment, iso
from pulse_core.model.short_ids import id_meant
from pulse_core.projections.notices import PREFIX
from pulse_core.projections.state import Snapshot, State
from pulse_core.settings.settings import Settings
from pulse_core.silences.projection import SILENCES, Silence
from pulse_core.silences.rule import next_start, remaining, silence
from pulse_core.silences.settings import WINDOWS, SilenceSettings

SHORTEST = 6
"""Characters at the end of an id that may stand for it: the beginning is shared by all of one minute."""

OF_A_PROCESS = (
    "restart-process:{}", "stop-process:{}", "notify:flapping:{}", "notify:stop:{}", "notify:doubt:{}",
)  # fmt: skip


def list_silences(state: State, settings: Settings, now: Moment) -> Mapping[str, Any]:
    """`silences`: those that a person added and that hold, oldest first; `recurring`: those of the settings."""
    return {
        "silences": [silence_json(id_, one, now) for id_, one in state.of(SILENCES).holding(now).items()],
        "recurring": [recurring_json(window, now.at) for window in WINDOWS.of(settings)],
    }


def silence_json(id_: str, silence: Silence, now: Moment) -> Mapping[str, Any]:
    """A silence as JSON values; `ends` is when it will by the present clock."""
    left = silence.left(now)
    return {
        "id": id_,
        "match": silence.match,
        "since": iso(silence.moment.at),
        "ends": iso(now.at + left),
        "left_s": left / US_PER_SECOND,
        "by": silence.by,
        "why": silence.why,
    }


def recurring_json(window: SilenceSettings, at: int) -> Mapping[str, Any]:
    """A recurring silence as JSON values; `next` is when it begins the next time."""
    left = remaining(window, at)
    return {
        "match": window.match,
        "days": list(window.days),
        "at": window.at,
        "for": format_duration(window.for_),
        "active": left > 0,
        "left_s": left / US_PER_SECOND,
        "next": iso(next_start(window, at)),
        "why": window.why,
    }


def find_silence(silences: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """The silence of this id, or the only one whose id begins or ends so; raises UnknownName or Ambiguous."""
    if not silences:
        raise PulseError(f"no silence {name!r}: none holds at this time")
    known = {one["id"]: one for one in silences}
    return known[id_meant("silence", name, known, shortest_end=SHORTEST)]


def unknown_pattern(pattern: str, state: State, settings: Settings) -> str:
    """The warning about a pattern that matches no known key; empty if it matches one."""
    known = set(known_keys(state, settings))
    if any(glob_matches(pattern, key) for key in known):
        return ""
    return f"{pattern!r} fits nothing so far: no effect had such a key, and no guarded process would{hint(pattern, known)}"


def known_keys(state: State, settings: Settings) -> Iterator[str]:
    """Keys that effects have, had lately, or could have."""
    yield from state.effects.keys
    yield from state.effects.settled_at
    yield from (PREFIX + topic for topic in state.notices.of)
    for process in settings.process:
        yield from (key.format(process.name) for key in OF_A_PROCESS)


def silence_report(name: str, curr: Snapshot, fold_without: FoldWithout) -> Mapping[str, Json] | None:
    """The silence of this id or pattern: whose it is, until when, and what it holds back now; None if there is none."""
    listed = list_silences(curr.state, curr.settings, curr.now)
    found: Mapping[str, Any] | None = None
    with suppress(PulseError):
        found = find_silence(listed["silences"], name)
    everything: Sequence[Mapping[str, Any]] = (*listed["silences"], *listed["recurring"])
    found = found or next((one for one in everything if one["match"] == name), None)
    if found is None:
        return None
    is_active = found.get("active", True)
    held = [one for one in fold_without(silence).effects if glob_matches(found["match"], one.key)]
    return {
        "kind": "silence",
        "name": found["match"],
        "state": "active" if is_active else "waiting",
        "since": found.get("since"),
        "why": found["why"],
        "by": found.get("by", "the settings"),
        "ends": iso(curr.now.at + round(found["left_s"] * 1e6)) if is_active else None,
        "next": found.get("next"),
        "holds_back": [{"key": one.key, "reason": one.reason} for one in held] if is_active else [],
    }
