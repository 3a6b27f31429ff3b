"""What the status says of checks, and `why` of one whose condition was never raised."""

from collections.abc import Iterator, Mapping

from pulse_core.capability import FoldWithout
from pulse_core.checks.conclusions import KEY, name_of, newest_words, overdue_us
from pulse_core.checks.settings import CHECKS
from pulse_core.model.durations import UNITS, duration_text
from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.names import NOT_WATCHED, OPTIONAL_WATCHERS
from pulse_core.model.text import listed
from pulse_core.projections.conditions import Condition
from pulse_core.projections.state import Snapshot

NAMED = 5
"""Checks that are named where they are not well."""


def lines(curr: Snapshot) -> Iterator[str]:
    """How many are well, and which are not, or were not looked at yet."""
    names = {check.name: name_of(check) for check in CHECKS.of(curr.settings)}
    if not names:
        return
    if OPTIONAL_WATCHERS in curr.control.left_out:
        yield f"checks    {NOT_WATCHED}"
        return
    last = curr.window(KEY).last
    oks = {name: (last.data.get(name, {}) if last else {}).get("ok") for name in names}
    others = {
        "bad": [name for name, ok in oks.items() if ok is False],
        "unknown": [name for name, ok in oks.items() if ok is None],
        # Its newest look alone was well, and its condition is raised still.
        "recovering": [name for name, ok in oks.items() if ok and curr.conditions[names[name]]],
    }
    said = [f"{len(names) - sum(map(len, others.values()))} of {len(names)} well"]
    said += [f"{word}: {listed(which, NAMED)}" for word, which in others.items() if which]
    yield f"checks    {'; '.join(said)}"


def seen(name: str, condition: Condition, curr: Snapshot) -> str:
    """What its newest look found, if that is newer than what raised its condition; empty if not."""
    check = next((one for one in CHECKS.of(curr.settings) if name_of(one) == name), None)
    last = curr.window(KEY).last
    if (
        check is None
        or last is None
        or last.moment.since(condition.seen or condition.changed) < US_PER_SECOND
    ):
        return ""
    detail = newest_words(check, curr)
    if detail and check.every >= UNITS["m"] and not overdue_us(check, curr):
        detail += f", looked at every {duration_text(check.every)}"
    return detail


def report(name: str, curr: Snapshot, fold_without: FoldWithout) -> Mapping[str, Json] | None:
    """How the check of this condition is; None if there is none."""
    check = next((one for one in CHECKS.of(curr.settings) if name_of(one) == name), None)
    if check is None:
        return None
    told = {"kind": "check", "name": name, "since": None}
    if OPTIONAL_WATCHERS in curr.control.left_out:
        return {**told, "state": "unknown", "why": f"it is {NOT_WATCHED}"}
    last = curr.window(KEY).last
    look = last.data.get(check.name, {}) if last else {}
    ok = look.get("ok")
    state = "unknown" if ok is None else "well" if ok else "bad"
    why = look.get("detail") or ("its last look found nothing wrong" if look else "it was not looked at yet")
    if excuse := look.get("excused"):
        why = f"{why}; it counts for nothing: {excuse}"
    return {**told, "state": state, "why": why}
