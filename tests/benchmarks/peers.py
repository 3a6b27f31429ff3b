"""Programs of others that keep a process alive, each told to guard the same victim.

They are looked for in the directories that PULSE_PEERS names, in this environment, and on the PATH.
"""

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.harness import daemon, made_home

PATIENCE = 60.0
FOREVER = f"{9_000_000 + os.getpid()}"
"""Seconds that a victim sleeps, as no other one does."""


class Breath:
    """Hears the first word of every new victim: its pid, through a FIFO."""

    def __init__(self, place: Path) -> None:
        self.path = place / "breath"
        os.mkfifo(self.path)
        self._end = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        self._said = b""

    def next(self) -> int:
        """The pid of the next victim that begins."""
        until = time.perf_counter() + PATIENCE
        while b"\n" not in self._said:
            ready, _, _ = select.select([self._end], [], [], max(0.0, until - time.perf_counter()))
            if not ready:
                raise TimeoutError(f"no victim within {PATIENCE:g} s")
            self._said += os.read(self._end, 4096)
        word, _, self._said = self._said.partition(b"\n")
        return int(word)

    def close(self) -> None:
        """Hear nothing any more."""
        os.close(self._end)


class Scene(NamedTuple):
    """A directory, and in it the program that is to be kept alive."""

    place: Path
    victim: Path
    breath: Breath


Guard = Callable[[Scene], AbstractContextManager[None]]


class Peer(NamedTuple):
    """Another guard. program: what it is started as; package: how it is installed; how: what it was told."""

    program: str
    package: str
    guard: Callable[[str, Scene], AbstractContextManager[None]]
    how: str = "its defaults"

    def guarded_by(self, program: str) -> Guard:
        """The guard, as the program that was found."""
        return partial(self.guard, program)


def scene_in(place: Path) -> Scene:
    """A small program that leaves its pid in a file, says it, and then sleeps."""
    place.mkdir()
    breath, victim = Breath(place), place / "victim"
    lines = (
        "#!/bin/sh",
        f"echo $$ > {place}/victim.pid",
        f"echo $$ > {breath.path}",
        f"exec sleep {FOREVER}",
    )
    victim.write_text("\n".join(lines) + "\n")
    victim.chmod(0o700)
    return Scene(place, victim, breath)


@contextmanager
def running(argv: Sequence[str], place: Path) -> Iterator[None]:
    """A program that surely ends."""
    with (place / "said").open("ab") as said:
        child = subprocess.Popen(argv, cwd=place, stdout=said, stderr=said, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(10)
        child.kill()
        child.wait()


@contextmanager
def pulse(scene: Scene) -> Iterator[None]:
    """Pulse, told not to mind that it is killed often."""
    config = f"""
[budget]
actions_per_minute = 0

[[process]]
name = "victim"
start = ["{scene.victim}"]
restart = {{ max = 1000, within = "10m", backoff = "0s", healthy_after = "0s", grace = "0s" }}
"""
    with daemon(made_home(scene.place / "home", config)):
        yield


@contextmanager
def bare(scene: Scene) -> Iterator[None]:
    """A loop that waits for the death and starts it again: what nobody can undercut."""
    code = "import subprocess, sys\nwhile True: subprocess.Popen(sys.argv[1:]).wait()"
    with running([sys.executable, "-c", code, str(scene.victim)], scene.place):
        yield


def circus(program: str, scene: Scene) -> AbstractContextManager[None]:
    """A circusd with one watcher."""
    (scene.place / "circus.ini").write_text(
        f"[circus]\nendpoint = ipc://{scene.place}/endpoint\npubsub_endpoint = ipc://{scene.place}/pubsub\n"
        f"[watcher:victim]\ncmd = {scene.victim}\ncopy_env = True\n"
    )
    return running([program, "circus.ini"], scene.place)


def supervisor(program: str, scene: Scene) -> AbstractContextManager[None]:
    """A supervisord with one program."""
    (scene.place / "supervisord.conf").write_text(
        f"[supervisord]\nnodaemon = true\nlogfile = {scene.place}/log\npidfile = {scene.place}/pid\n"
        f"[program:victim]\ncommand = {scene.victim}\n"
    )
    return running([program, "-c", "supervisord.conf"], scene.place)


def monit(program: str, scene: Scene) -> AbstractContextManager[None]:
    """A monit that looks as often as it can."""
    rules = scene.place / "monitrc"
    rules.write_text(
        f"set daemon 1\nset pidfile {scene.place}/pid\nset idfile {scene.place}/id\nset statefile {scene.place}/state\n"
        f"check process victim with pidfile {scene.place}/victim.pid\n"
        f"  start program = \"/bin/sh -c 'setsid {scene.victim} > /dev/null 2>&1 &'\"\n"
    )
    rules.chmod(0o600)
    return running([program, "-I", "-c", str(rules)], scene.place)


PEERS = {
    "supervisord": Peer("supervisord", "pip install supervisor", supervisor),
    "circus": Peer("circusd", "pip install circus", circus),
    "Monit": Peer("monit", "the package monit of the system", monit, "looking every second, its shortest"),
}


def found(program: str) -> str | None:
    """Where a program is, or None."""
    places = (os.environ.get("PULSE_PEERS", ""), str(Path(sys.executable).parent), os.environ.get("PATH", ""))
    return shutil.which(program, path=os.pathsep.join(filter(None, places)))
