"""The same work done by programs that others wrote, where they are installed: Pulse beside them, in one run."""

import os
import random
import signal
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path

from pulse_adapters.workers.proc import command_line, start_time_of
from tests.benchmarks import bench_effects
from tests.benchmarks.harness import compiled, deadline, directory
from tests.benchmarks.peers import FOREVER, PATIENCE, PEERS, Guard, Scene, bare, found, pulse, scene_in
from tests.benchmarks.table import Row, percentile, spread, times

KILLS, ROUNDS = 20, 3
REST = (1.2, 2.2)
"""Seconds between a replacement and the next kill: at random, so that nobody's rounds fall in step with it."""


def kept_alive(guard: Guard, place: Path, kills: int) -> list[float]:
    """Milliseconds from each SIGKILL to the first word of the replacement."""
    scene, spent, pid = scene_in(place), list[float](), 0
    with closing(scene.breath), deadline(round(PATIENCE + kills * 10)):
        try:
            with guard(scene):
                pid = scene.breath.next()
                for _ in range(kills):
                    time.sleep(random.uniform(*REST))
                    began = time.perf_counter()
                    os.kill(pid, signal.SIGKILL)
                    pid = scene.breath.next()
                    spent.append((time.perf_counter() - began) * 1000)
        finally:
            end(scene, pid)
    return spent


def end(scene: Scene, pid: int) -> None:
    """End the last victim, if its guard has left it."""
    while not (words := command_line(pid)) and start_time_of(pid) is not None:
        time.sleep(0.001)  # who has just spoken may be in its exec, and shows no words
    with suppress(ProcessLookupError):
        if FOREVER in words or str(scene.victim) in words:
            os.kill(pid, signal.SIGKILL)


def guards(kills: int) -> list[Row]:
    """From a death to the replacement: a bare loop, Pulse, and the peers that are here."""
    with directory() as place:
        limit = kept_alive(bare, place / "bare", kills)
        ours = kept_alive(pulse, place / "pulse", kills)
        middle, raw = percentile(ours, 50), percentile(limit, 50)
        what = f"SIGKILL -> first word of the replacement, {kills} kills: Pulse"
        rows = [Row(what, "", spread(ours), f"{spread(limit)} (a loop around wait)", times(middle, raw))]
        return rows + [beside(name, place / name, kills, middle) for name in PEERS]


def beside(name: str, place: Path, kills: int, ours: float) -> Row:
    """A peer's line, or why there is none. ours: what Pulse took at the median, milliseconds."""
    peer = PEERS[name]
    if (program := found(peer.program)) is None:
        return absent(name, peer.program, peer.package)
    try:
        spent = kept_alive(peer.guarded_by(program), place, kills)
    except (OSError, TimeoutError) as error:
        return Row(f"- {name}", "", f"not measured: {error}")
    return Row(f"- {name} ({peer.how})", "", spread(spent), "", f"{percentile(spent, 50) / ours:.1f} x Pulse")


def absent(name: str, program: str, package: str) -> Row:
    """The line of what is not there."""
    return Row(f"- {name}", "", f"not measured: {program} is not installed ({package})")


def actions(rounds: int) -> list[Row]:
    """Actions that do nothing, each step on disk: Pulse, and huey if it is here."""
    rows = [row._replace(goal="") for row in bench_effects.run(rounds)]
    if (program := found("huey_consumer")) is None:
        return [*rows, absent("huey", "huey_consumer", "pip install huey")]
    with directory() as place:
        rates = [tasks_per_second(Path(program), place / f"{turn}.db") for turn in range(rounds)]
    what = f"- huey, {bench_effects.AT_A_TIME} worker threads, SQLite with fsync, results kept"
    return [*rows, Row(what, "", f"{percentile(rates, 50):,.0f}/s (best {max(rates):,.0f})")]


def tasks_per_second(huey: Path, file: Path) -> float:
    """One round of huey, run by the interpreter that it is installed for. Raises RuntimeError with what that said."""
    numbers = (bench_effects.WAITING, bench_effects.AT_A_TIME)
    argv = [huey.with_name("python"), Path(__file__).with_name("huey_driver.py"), file, *numbers]
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=PATIENCE * 5)
    if done.returncode:
        raise RuntimeError(f"huey: {done.stderr.strip().splitlines()[-1:]}")
    return float(done.stdout)


def run(kills: int = KILLS, rounds: int = ROUNDS) -> list[Row]:
    """Both comparisons."""
    compiled()
    return [*guards(kills), *actions(rounds)]


if __name__ == "__main__":
    from tests.benchmarks.table import markdown

    print(markdown(run()))
