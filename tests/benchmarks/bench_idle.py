"""What Pulse costs while nothing happens: default settings, ten guarded processes. `--seconds N` for longer."""

import argparse
import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.host.usage_watcher import ProcessUsageWatcher
from pulse_adapters.workers.proc import read_stat
from pulse_core.composition import Settings
from pulse_core.model.vitals import Window
from pulse_core.ports.host import ProcessId
from pulse_core.record.view import View
from tests.benchmarks.bare import victim
from tests.benchmarks.harness import children_of, compiled, daemon, directory, made_home
from tests.benchmarks.table import Row

GUARDED, SETTLE, SECONDS = 10, 10.0, 60.0
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """CPU seconds of a process and of its reaped children, the CPU's own count, and when."""

    spent: float
    children: float
    at: float

    def share_since(self, then: "Cost") -> float:
        """The fraction of a core."""
        return (self.spent + self.children - then.spent - then.children) / (self.at - then.at)


def cost(pid: int) -> Cost:
    """What the process has cost so far; its own share is exact, /proc's ticks of 10 ms are too coarse here."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    children = (int(fields[13]) + int(fields[14])) / TICKS_PER_SECOND
    clock = (
        ~pid << 3
    ) | 2  # the kernel's number of this process's CPU clock, as clock_getcpuclockid makes it
    return Cost(time.clock_gettime(clock), children, time.monotonic())


def memory(pid: int) -> dict[str, float]:
    """Resident and proportional sizes in MiB: Rss, Pss, and what is private to it."""
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    kib = {words[0].rstrip(":"): int(words[1]) for words in lines}
    private = kib["Private_Clean"] + kib["Private_Dirty"]
    return {"Rss": kib["Rss"] / 1024, "Pss": kib["Pss"] / 1024, "Private": private / 1024}


def config() -> str:
    """Ten processes, and nothing else but the defaults."""
    argv = [victim() for _ in range(GUARDED)]
    return "\n".join(
        f'[[process]]\nname = "guarded-{place}"\nstart = ["{words[0]}", "{words[1]}"]\n'
        f'match = "^{words[0]} {words[1].replace(".", "[.]")}$"\n'
        for place, words in enumerate(argv)
    )


def run(seconds: float = SECONDS) -> list[Row]:
    """CPU and memory after it has settled."""
    compiled()
    with directory() as place:
        home = made_home(place / "home", config())
        with children_of(home), daemon(home) as (pid, _):
            time.sleep(SETTLE)
            before = cost(pid)
            time.sleep(seconds)
            after, size = cost(pid), memory(pid)
    sizes = f"Pss {size['Pss']:.1f}, private {size['Private']:.1f} MiB"
    return [
        Row(
            f"idle CPU, {GUARDED} guarded processes, {seconds:g} s",
            "<= 0.15 % of a core",
            f"{after.share_since(before):.3%}",
        ),
        Row("idle memory", "RSS <= 42 MiB", f"RSS {size['Rss']:.1f} MiB", sizes),
        asyncio.run(usage_cost()),
    ]


TREES, SAMPLES = 50, 20


async def no_members(name: str) -> tuple[ProcessId, ...]:
    """None is in a control group."""
    return ()


async def usage_cost() -> Row:
    """What it costs to measure fifty trees of three processes, at the default interval."""
    argv = ("sh", "-c", "sleep 6000 & sleep 6000 & wait")
    roots = [subprocess.Popen(argv, start_new_session=True) for _ in range(TREES)]
    settings = Settings.model_validate({"process": [{"name": f"t{n}", "start": argv} for n in range(TREES)]})
    known = {f"t{n}": read_stat(root.pid).found for n, root in enumerate(roots)}  # type: ignore[union-attr]  # they live
    usage = ProcessUsageWatcher(lambda: settings, lambda: known, no_members, View(), Window)
    try:
        while (await usage.collect()).data["t0"]["processes"] < 3:
            await asyncio.sleep(0.1)
        before = time.thread_time()
        for _ in range(SAMPLES):
            await usage.collect()
        spent = (time.thread_time() - before) / SAMPLES
    finally:
        for root in roots:
            os.killpg(root.pid, signal.SIGKILL)
            root.wait()
    return Row(
        f"sampling {TREES} trees of 3 processes every {usage.interval:g} s",
        "<= 0.1 % of a core",
        f"{spent / usage.interval:.3%}",
        f"{spent * 1000:.1f} ms of CPU a sample",
    )


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    print(markdown(run(parser.parse_args().seconds)))
