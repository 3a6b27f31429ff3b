"""What a silence is, and what it holds back at this moment."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from pulse_core.capability import FoldWithout
from pulse_core.model.errors import PulseError
from pulse_core.model.glob import glob_matches
from pulse_core.model.json_types import Json
from pulse_core.model.moment import iso
from pulse_core.projections.state import Snapshot
from pulse_core.silences.listing import find_silence, list_silences
from pulse_core.silences.rule import silence


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
