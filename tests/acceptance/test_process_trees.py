"""A real daemon guards programs of every kind, each with whatever comes out of it, and loses none of that at a death."""

import json
import os
import signal
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest

from pulse_adapters.workers.proc import command_line, live_processes
from tests.acceptance.conftest import Served
from tests.control_groups import skip_without_groups, where_none_can_be_made
from tests.long_form import sample, sampled
from tests.process_trees import PROGRAMS, is_of_program, script_of
from tests.processes import child_of_test

NAMES = {f"tree-{number}": program for number, program in enumerate(PROGRAMS)}


class Trees:
    """All of the programs, guarded by one daemon."""

    def __init__(self, served: Served, place: Path) -> None:
        self.served, self.seconds = served, {name: f"9{uuid.uuid4().int % 10**12:012}" for name in NAMES}
        served.configure(
            '[budget]\nactions_per_minute = 0\n[watch]\nprocess_interval = "200ms"\n'
            + "".join(self._settings(name, place / f"{name}.pid") for name in NAMES)
        )

    def _settings(self, name: str, pid_file: Path) -> str:
        script = script_of(PROGRAMS[NAMES[name]][0], self.seconds[name], pid_file)
        file = f'pid_file = "{pid_file}"\n' if "pid file" in NAMES[name] else ""
        restart = 'restart = { max = 1000, backoff = "0s", healthy_after = "0s" }'
        return f'[[process]]\nname = "{name}"\nstart = {json.dumps(["sh", "-c", script])}\n{file}{restart}\n'

    def alive(self) -> Mapping[str, set[int]]:
        """The pids of all that came out of each, by what they are and not by their marks."""
        lines = {one.pid: command_line(one.pid) for one in live_processes()}
        return {
            name: {pid for pid, line in lines.items() if is_of_program(line, seconds)}
            for name, seconds in self.seconds.items()
        }

    def mains(self) -> dict[str, int]:
        """Who stands for those that are up."""
        return {one["name"]: one["pid"] for one in self.served.status()["processes"] if one["state"] == "up"}

    def whole(self, before: Mapping[str, set[int]]) -> tuple[dict[str, int], Mapping[str, set[int]]]:
        """Who stands for each, and all of each, once they are whole and nobody of before is left."""

        def seen() -> tuple[dict[str, int], Mapping[str, set[int]]] | None:
            alive, mains = self.alive(), self.mains()
            is_whole = all(
                len(alive[name]) == PROGRAMS[program][1]
                and mains.get(name) in alive[name]
                and not alive[name] & before.get(name, set())
                for name, program in NAMES.items()
            )
            return (mains, alive) if is_whole else None

        found: tuple[dict[str, int], Mapping[str, set[int]]] = self.served.eventually(
            seen, "all of them, once, and nobody of before"
        )
        return found


@pytest.fixture(params=sampled(["with control groups", "without"], 2))
def trees(request: pytest.FixtureRequest, served: Served, tmp_path: Path) -> Iterator[Trees]:
    without = request.param == "without"
    served.is_forked = not without  # a fork is in the group of the process that forks
    with where_none_can_be_made(skip_without_groups()) if without else nullcontext():
        yield Trees(served, tmp_path)
        served.close()


def test_no_death_leaves_doubles_or_touches_anybody(trees: Trees) -> None:
    served, dice = trees.served, Random(0)
    marks = {"PULSE_PROCESS": f"tree-0@{served.home.path}", "PULSE_EFFECT": str(uuid.uuid4())}
    with (
        child_of_test(subprocess.Popen(["sleep", "1000"])) as stranger,
        child_of_test(subprocess.Popen(["sleep", "1000"], env={**os.environ, **marks})) as marked,
    ):
        served.start()
        mains, before = trees.whole({})
        for turn in range(sample(2, 70)):
            is_alone = turn % 5 == 1  # they die while no daemon is there
            if is_alone:
                served.kill()
            for name, members in before.items():
                helpers = sorted(members - {mains[name]})
                for pid in (*dice.sample(helpers, dice.randint(0, len(helpers))), mains[name]):
                    os.kill(pid, signal.SIGKILL)
            if is_alone:
                served.start()
            mains, before = trees.whole(before)
        for name in NAMES:
            served.append("process-stop-requested", name, expires_us=10**10)
        served.eventually(lambda: not any(trees.alive().values()), "nothing is left")
        assert (stranger.poll(), marked.poll()) == (None, None)
        stranger.kill()
        marked.kill()
