"""How long a hostile engine can hold the daemon's loop: whole daemons in this process, one for each engine."""

import asyncio
import gc
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.harness import compiled, directory
from tests.benchmarks.table import Row
from tests.callback_times import callback_times
from tests.hostile_engines import HARMLESS, engines, hostile_daemon

SECONDS = 3.0


async def longest(place: Path, files: Mapping[str, str]) -> tuple[float, str]:
    """The milliseconds of the longest callback while this engine runs, and its name."""
    async with hostile_daemon(place, files):
        with callback_times() as times:
            await asyncio.sleep(SECONDS)
    return times.worst


def run() -> list[Row]:
    """The longest callback under all of them, then that of each."""
    compiled()
    gc.collect()
    found: dict[str, tuple[float, str]] = {}
    with directory() as place:
        asyncio.run(longest(place / "first", HARMLESS))  # imports, and decoders that are made once
        for number, (name, files) in enumerate({"a harmless engine": HARMLESS, **engines()}.items()):
            found[name] = asyncio.run(longest(place / str(number), files))
    own, _ = found.pop("a harmless engine")
    worst, name = max((took, name) for name, (took, _) in found.items())
    return [
        Row(
            f"longest callback under hostile engines, {len(found)} engines",
            "<= 5 ms",
            f"{worst:.1f} ms ({name})",
            f"{own:.1f} ms (a harmless engine)",
        ),
        *(Row(f"- {name}", "", f"{took:.1f} ms ({callback})") for name, (took, callback) in found.items()),
    ]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
