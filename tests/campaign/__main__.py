"""`make campaign`: lives of bad luck from many seeds, hundreds of kills, thousands of flipped bits, mutants, attacks."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import chain
from multiprocessing import Pool
from pathlib import Path

from tests.campaign import bad_disk, day, forgery, tools
from tests.campaign.broken_off import broken_backups, broken_restores
from tests.campaign.crash import BACK_WITHIN, run
from tests.campaign.damages import campaign as damaged
from tests.campaign.flips import campaign as flipped
from tests.campaign.guidance_pollers import campaign as guidance_polled
from tests.integration.rule_host.rule_host_attacks import ATTACKS
from tests.simulation.chaos import live

PATIENT = ("--timeout=3000", "-o", "faulthandler_timeout=3600")
"""Options of pytest for long forms."""


def main() -> int:
    """Run every campaign; the exit code says whether all laws held."""
    parser = argparse.ArgumentParser(prog="tests.campaign", description=main.__doc__)
    parser.add_argument("--seeds", type=int, default=3_000, help="simulated lives")
    parser.add_argument(
        "--first", type=int, default=0, help="the first seed; a failing one can be lived again"
    )
    parser.add_argument("--kills", type=int, default=500, help="kills of a real daemon")
    parser.add_argument("--flips", type=int, default=2_000, help="flipped bytes in the log and its WAL")
    parser.add_argument(
        "--heals", type=int, default=200, help="flipped bits in a home, each healed from a backup"
    )
    parser.add_argument(
        "--damages", type=int, default=1_000, help="damages of every store, its daemon down or running"
    )
    parser.add_argument(
        "--broken-off", type=int, default=1, metavar="STRIDE",
        help="kill backups and restores before every so many-th of their steps; 0: not at all",
    )  # fmt: skip
    parser.add_argument(
        "--hours", type=int, default=24, help="hours lived to see memory and descriptors stay"
    )
    parser.add_argument(
        "--mutants", type=int, default=1, metavar="STRIDE",
        help="try every so many-th small change of the survival rules against their tests; 0: none",
    )  # fmt: skip
    parser.add_argument(
        "--attacks", type=int, default=1, metavar="TIMES",
        help="let every hostile rule loose on a whole daemon so often; 0: not at all",
    )  # fmt: skip
    parser.add_argument(
        "--samples", type=int, default=1, metavar="TIMES",
        help="do in full, so often, what `make check` does in samples; 0: not at all",
    )  # fmt: skip
    parser.add_argument(
        "--bad-disk", type=float, default=600.0, metavar="SECONDS",
        help="so long on a disk that is full, and on one that has turned read-only; 0: not at all",
    )  # fmt: skip
    parser.add_argument("--forgeries", type=int, default=1_000_000, help="forged messages of hosts; 0: none")
    parser.add_argument(
        "--tools",
        type=int,
        default=1,
        help="hold agents' flags against the installed programs; 0: not at all",
    )
    parser.add_argument("--pollers", type=int, default=50, help="runs of four agents that ask for guidance")
    options = parser.parse_args()
    sound = [
        simulations(options.first, options.seeds),
        kills(options.kills),
        flips(options.flips),
        heals(options.heals, options.first),
        damages(options.damages, options.first),
        breaks(options.broken_off),
        days(options.hours, options.first),
        mutants(options.mutants),
        attacks(options.attacks),
        forgeries(options.forgeries, options.first),
        samples(options.samples),
        not options.bad_disk or bad_disk.campaign_of_all(options.bad_disk),
        not options.tools or flags(),
        guidance_polled(options.pollers),
    ]
    return 0 if all(sound) else 1


def simulations(first: int, seeds: int) -> bool:
    """Live every seed; say which ones broke a law."""
    began, ticks, bad = time.monotonic(), 0, []
    with Pool() as pool:
        for seed, lived, fault in pool.imap_unordered(attempt, range(first, first + seeds)):
            ticks += lived
            if fault:
                bad.append(seed)
                print(
                    f"seed {seed}: {fault}\n  again: python -m tests.campaign --first {seed} --seeds 1 --kills 0",
                    flush=True,
                )
    print(
        f"simulation: {seeds} lives, {ticks:,} ticks, {len(bad)} broke a law, {time.monotonic() - began:.0f} s",
        flush=True,
    )
    return not bad


def attempt(seed: int) -> tuple[int, int, str]:
    """One life: the seed, its ticks, and what went wrong."""
    try:
        daemon = live(seed, deeds=60).daemon
        return seed, daemon.ticker.number if daemon else 0, ""
    except Exception as error:  # noqa: BLE001 - any failure belongs to its seed
        return seed, 0, f"{type(error).__name__}: {error}"


def kills(count: int) -> bool:
    """Kill a real daemon so often, in homes of their own, a hundred kills each."""
    for home in range(0, count, 100):
        with tempfile.TemporaryDirectory(prefix="pulse-campaign-") as path:
            seen = run(Path(path) / "home", min(100, count - home), seed=home)
        print(f"crash: {seen}", flush=True)
        if seen["slowest_start_s"] > BACK_WITHIN:
            print(f"crash: slower back than {BACK_WITHIN} s")
            return False
    return True


def flips(count: int) -> bool:
    """Flip bytes in the log and its WAL; none may lose an acknowledged row in silence."""
    if not count:
        return True
    env = {**os.environ, "PULSE_FLIPS": str(count)}
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        *PATIENT,
        "tests/integration/sqlite/test_sqlite_damage.py",
    ]
    return subprocess.run(argv, env=env, check=False).returncode == 0


def heals(count: int, seed: int) -> bool:
    """Flip bits in a home that a daemon left: everybody says so, and a restore heals it."""
    with tempfile.TemporaryDirectory(prefix="pulse-campaign-") as path:
        try:
            print(f"flips: {dict(flipped(Path(path), count, seed))}", flush=True)
        except AssertionError as error:
            print(f"flips: {error}", flush=True)
            return False
    return True


def damages(count: int, seed: int) -> bool:
    """Damage every store of a home; nothing is lost in silence, and a restore heals it."""
    with tempfile.TemporaryDirectory(prefix="pulse-campaign-") as path:
        try:
            print(f"damages: {dict(damaged(Path(path), count, seed))}", flush=True)
        except AssertionError as error:
            print(f"damages: {error}", flush=True)
            return False
    return True


def breaks(stride: int) -> bool:
    """Kill backups and restores at their steps; no half of anything passes for the whole."""
    for campaign in (broken_backups, broken_restores) if stride else ():
        with tempfile.TemporaryDirectory(prefix="pulse-campaign-") as path:
            try:
                print(f"{campaign.__name__}: {len(list(campaign(Path(path), stride)))} kills", flush=True)
            except AssertionError as error:
                print(f"{campaign.__name__}: {error}", flush=True)
                return False
    return True


def days(hours: int, seed: int) -> bool:
    """Live a day in simulation; memory grows by no more than it may, and no descriptor is forgotten."""
    if not hours:
        return True
    told = day.run(hours, seed)
    print(f"day: {told}{'' if day.holds(told) else ', which is too much'}", flush=True)
    return day.holds(told)


def mutants(stride: int) -> bool:
    """Change the survival rules; every change fails a test, or is judged. In a process without the rules in memory."""
    if not stride:
        return True
    argv = [sys.executable, "-m", "tests.campaign.mutants", "--stride", str(stride)]
    return subprocess.run(argv, check=False).returncode == 0


def attacks(times: int) -> bool:
    """Let hostile rules loose on a whole daemon; what is guarded is back at once, and the log says who did it."""
    argv = [sys.executable, "-m", "pytest", "-q", *PATIENT, "tests/acceptance/test_engine.py"]
    env = {**os.environ, "PULSE_CAMPAIGN": "1"}
    for turn in range(1, times + 1):
        if subprocess.run(argv, env=env, check=False).returncode:
            print(f"attacks: a law was broken in turn {turn} of {times}", flush=True)
            return False
    if times:
        print(f"attacks: {len(ATTACKS)} hostile rules broke no law, {times} times", flush=True)
    return True


def forgeries(count: int, seed: int) -> bool:
    """Have hosts say what they must not; nothing leaves the boundary, and no tick is late."""
    try:
        return not count or forgery.main(count, seed)
    except AssertionError as error:
        print(f"forgery: {error}", flush=True)
        return False


def flags() -> bool:
    """Install the programs of agents and of the recipes; each knows the flags that it is called with."""
    with tempfile.TemporaryDirectory(prefix="pulse-campaign-", ignore_cleanup_errors=True) as path:
        try:
            for told in chain(tools.check(Path(path)), tools.check_recipes(Path(path))):
                print(f"tools: {told}", flush=True)
        except (AssertionError, subprocess.SubprocessError) as error:
            print(f"tools: {error}", flush=True)
            return False
    return True


def samples(times: int) -> bool:
    """Run in their long form the tests that have one by `tests.long_form`."""
    sampled = [
        str(path)
        for path in sorted(Path("tests").rglob("test_*.py"))
        if "from tests.long_form import" in path.read_text()
    ]
    argv = [sys.executable, "-m", "pytest", "-q", *PATIENT, *sampled]
    env = {**os.environ, "PULSE_CAMPAIGN": "1"}
    for turn in range(1, times + 1):
        if subprocess.run(argv, env=env, check=False).returncode:
            print(f"samples: one failed in full in turn {turn} of {times}", flush=True)
            return False
    if times:
        print(f"samples: {len(sampled)} files of tests in full, {times} times", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
