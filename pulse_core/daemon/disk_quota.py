"""Keeps vitals.db and logs/ within `[self] disk_mb`: checked every ten seconds, the oldest data is deleted first.

It also allocates the reserve for a full disk again after it was released.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from pulse_core.model.text import format_size
from pulse_core.ports.loops import coalesced
from pulse_core.settings.settings import Settings

CHECK_INTERVAL_S = 10.0

MIN_SHARE = 0.25
MAX_SHARE = 0.9
"""The smallest and largest share of the time covered by vitals that is deleted at once."""


class ProcessOutput(NamedTuple):
    """The output of a guarded process: the file's name, its bytes, and those of the older file beside it (`.1`)."""

    name: str
    size: int
    old: int = 0

    @property
    def whole(self) -> int:
        """Bytes of both."""
        return self.size + self.old


class Cut(NamedTuple):
    """An output to rotate: its last `kept` bytes become the older file, and the file is emptied."""

    name: str
    kept: int


class QuotaPlan(NamedTuple):
    """Outputs to cut, and the oldest share of the vitals to delete."""

    cuts: tuple[Cut, ...] = ()
    forget: float = 0.0


def plan_quota(vitals: int, outputs: Sequence[ProcessOutput], bound: int) -> QuotaPlan:
    """Decide what to delete if both together exceed the bound: each of the two may have half of it.

    Of the outputs the largest are cut first, each to its part of a quarter of the bound.
    """
    printed = sum(output.whole for output in outputs)
    if vitals + printed <= bound:
        return QuotaPlan()
    half = bound // 2
    forget = min(max(1 - half / vitals, MIN_SHARE), MAX_SHARE) if vitals > half else 0.0
    cuts: list[Cut] = []
    kept = half // 2 // max(1, len(outputs))
    for output in sorted(outputs, key=lambda one: -one.whole):
        if printed <= half or output.whole <= kept:
            break
        cuts.append(Cut(output.name, min(kept, output.size)))
        printed -= output.whole - min(kept, output.size)
    return QuotaPlan(tuple(cuts), forget)


class OwnFiles(Protocol):
    """The files that Pulse writes beside its log. Every method blocks, so call it in a thread; raises OSError."""

    def sizes(self) -> tuple[int, Sequence[ProcessOutput]]:
        """The bytes of the vitals, and every output."""

    def cut(self, cuts: Sequence[Cut]) -> list[str]:
        """Cut these outputs; returns what was done as sentences."""

    def look_for_lost_outputs(self) -> str:
        """Why what processes print may be lost now, in words; empty if it has room, or the whole home has none."""

    def hold_back(self) -> None:
        """Allocate the reserve again if it was released and there is room for it."""


async def keep_quota(
    files: OwnFiles,
    forget_oldest: Callable[[float], Awaitable[None]],
    settings: Callable[[], Settings],
    failed: Callable[[str, str], None],
) -> None:
    """Check the quota for ever and make room; report what was deleted, what failed, and that outputs are lost.

    forget_oldest: deletes this share of the vitals.
    """
    while True:
        await asyncio.sleep(coalesced(CHECK_INTERVAL_S))
        bound = settings().self_.disk_mb << 20
        try:
            await asyncio.to_thread(files.hold_back)
            if lost := await asyncio.to_thread(files.look_for_lost_outputs):
                failed("disk", lost)
            vitals, outputs = await asyncio.to_thread(files.sizes)
            if (due := plan_quota(vitals, outputs, bound)) == QuotaPlan():
                continue
            words = await asyncio.to_thread(files.cut, due.cuts)
            if due.forget:
                await forget_oldest(due.forget)
                words.append(f"the oldest {due.forget:.0%} of vitals.db are forgotten")
        except OSError as error:
            failed("disk", f"{error.filename or 'the home'}: {error.strerror}; nothing was made room for")
            continue
        taken = format_size(vitals + sum(output.whole for output in outputs))
        over = f"vitals.db and logs/ took {taken}, {format_size(bound)} are allowed ([self] disk_mb)"
        failed("disk", f"{over}: {'; '.join(words)}")
