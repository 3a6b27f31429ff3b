"""What the status says of checks."""

from collections.abc import Iterator

from pulse_core.checks.conclusions import KEY
from pulse_core.checks.settings import CHECKS
from pulse_core.projections.state import Snapshot

NAMED = 5
"""Checks that are named where they are not well."""


def lines(curr: Snapshot) -> Iterator[str]:
    """How many are well, and which are not, or were not looked at yet."""
    names = [check.name for check in CHECKS.of(curr.settings)]
    if not names:
        return
    last = curr.window(KEY).last
    oks = {name: (last.data.get(name, {}) if last else {}).get("ok") for name in names}
    others = {
        "bad": [name for name, ok in oks.items() if ok is False],
        "unknown": [name for name, ok in oks.items() if ok is None],
    }
    said = [f"{sum(map(bool, oks.values()))} of {len(names)} well"]
    for word, which in others.items():
        more = f" and {len(which) - NAMED} more" if len(which) > NAMED else ""
        said += [f"{word}: {', '.join(which[:NAMED])}{more}"] if which else []
    yield f"checks    {'; '.join(said)}"
