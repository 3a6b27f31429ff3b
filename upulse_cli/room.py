"""Keeps vitals.db and logs/ within `[self] disk_mb`: a look every ten seconds, and the oldest goes.

It also holds blocks back again for a full disk, when those of before were given up.
"""

import asyncio
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.host.rotation import cut
from pulse_adapters.sqlite.reserve import SIZE, Reserve
from pulse_adapters.sqlite.vitals import SqliteVitals
from pulse_core.daemon.room import Cut, Output, Plan, plan
from pulse_core.model.sizes import spell_size
from pulse_core.settings import Settings

LOOK_S = 10.0
OLDER = ".1"


async def keep_room(
    home: Home, vitals: SqliteVitals, settings: Callable[[], Settings], failed: Callable[[str, str], None]
) -> None:
    """Look for ever, and make room; what went, and what could not, is said."""
    while True:
        await asyncio.sleep(LOOK_S)
        bound = settings().self_.disk_mb << 20
        try:
            await asyncio.to_thread(held_back_again, home)
            taken, due = await asyncio.to_thread(looked, home, bound)
            if due == Plan():
                continue
            words = await asyncio.to_thread(cut_all, home.outputs, due.cuts)
            if due.forget:
                await vitals.yield_oldest(due.forget)
                words.append(f"the oldest {due.forget:.0%} of vitals.db are forgotten")
        except OSError as error:
            failed("disk", f"{error.filename or home.path}: {error.strerror}; nothing was made room for")
            continue
        over = (
            f"vitals.db and logs/ took {spell_size(taken)}, {spell_size(bound)} are allowed ([self] disk_mb)"
        )
        failed("disk", f"{over}: {'; '.join(words)}")


def held_back_again(home: Home) -> None:
    """Make the reserve for a full disk anew, once it was given up and there is room for it."""
    if home.reserve.exists():
        return
    file_system = os.statvfs(home.run)
    if file_system.f_bavail * file_system.f_frsize >= 2 * SIZE:
        Reserve(home.reserve).make()


def looked(home: Home, bound: int) -> tuple[int, Plan]:
    """How much there is, and what is to go."""
    vitals = sum(taken(Path(f"{home.vitals}{part}")) for part in ("", "-wal"))
    outputs = list(outputs_in(home.outputs))
    return vitals + sum(one.whole for one in outputs), plan(vitals, outputs, bound)


def outputs_in(directory: Path) -> Iterator[Output]:
    """Every output in logs/ that is a plain file."""
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return
    for name in names:
        if name.endswith(".log"):
            yield Output(name, taken(directory / name), taken(directory / f"{name}{OLDER}"))
        elif name.endswith(f".log{OLDER}") and name.removesuffix(OLDER) not in names:
            yield Output(name.removesuffix(OLDER), 0, taken(directory / name))


def taken(path: Path) -> int:
    """Bytes that a plain file takes on the disk, of what it holds; 0 for anything else."""
    try:
        found = path.lstat()
    except OSError:
        return 0
    return min(found.st_size, found.st_blocks * 512) if stat.S_ISREG(found.st_mode) else 0


def cut_all(directory: Path, cuts: Sequence[Cut]) -> list[str]:
    """Cut the outputs; what was done, in words."""
    return [cut_one(directory / one.name, one.kept) for one in cuts]


def cut_one(path: Path, kept: int) -> str:
    """Make the end of an output the older one, which goes first: it takes the room. What was done, in words."""
    older = path.with_name(path.name + OLDER)
    before = taken(older)
    older.unlink(missing_ok=True)
    return f"{path.name} gives back {spell_size(before + cut(path, kept))}"
