"""How Pulse keeps its own files from filling the disk: what goes, so that the newest stays. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

LEAST = 0.25
MOST = 0.9
"""The shares of the time covered by vitals that go at once."""


class Output(NamedTuple):
    """What a guarded process prints: the file's name, its bytes, and those of the older one beside it (`.1`)."""

    name: str
    size: int
    old: int = 0

    @property
    def whole(self) -> int:
        """Bytes of both."""
        return self.size + self.old


class Cut(NamedTuple):
    """An output whose last `kept` bytes become the older file, and which begins anew."""

    name: str
    kept: int


class Plan(NamedTuple):
    """Outputs to cut, and the oldest share of the vitals to forget."""

    cuts: tuple[Cut, ...] = ()
    forget: float = 0.0


def plan(vitals: int, outputs: Sequence[Output], bound: int) -> Plan:
    """What goes if all together is over the bound: each of the two may have half of it.

    Of the outputs the largest are cut first, each to its part of a quarter of the bound.
    """
    printed = sum(output.whole for output in outputs)
    if vitals + printed <= bound:
        return Plan()
    half = bound // 2
    forget = min(max(1 - half / vitals, LEAST), MOST) if vitals > half else 0.0
    cuts: list[Cut] = []
    kept = half // 2 // max(1, len(outputs))
    for output in sorted(outputs, key=lambda one: -one.whole):
        if printed <= half or output.whole <= kept:
            break
        cuts.append(Cut(output.name, min(kept, output.size)))
        printed -= output.whole - min(kept, output.size)
    return Plan(tuple(cuts), forget)
