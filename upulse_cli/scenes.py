"""Scenes that break something harmless in a home of their own, and what Pulse answers."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.host.proc import PROCESS
from pulse_adapters.host.process_search import marked
from pulse_adapters.ipc.lock import holder
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_core.app.incidents import incidents_in
from pulse_core.app.status import home_status
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.ports.readers import EventQuery
from upulse_cli.wiring.daemon_control import daemon_process
from upulse_cli.wiring.home import home_context

PATIENCE = 30.0
LOOK = 0.02
AFTERMATH = 0.3
"""Seconds in which what still follows belongs to the picture."""

Told = Mapping[str, Any]
Seen = Callable[[Sequence[Told]], bool]


@dataclass(frozen=True)
class Scene:
    """A scene. about: what it shows; settings: of its home, where {home} is its directory; break_it: what goes
    wrong, after which `answered` looks for the answer among the events since (or since the start)."""

    about: str
    settings: str
    break_it: Callable[[Home], str]
    answered: Seen
    from_the_start: bool = False


def kinds(*wanted: str) -> Seen:
    """Whether events of these kinds have come, one after the other."""

    def seen(events: Sequence[Told]) -> bool:
        come = (event["kind"] for event in events)
        return all(kind in come for kind in wanted)  # each search goes on behind what the last one found

    return seen


def pid_of(home: Home, name: str = "demo") -> int:
    """The pid of a guarded process that is up."""
    found = next(one for one in home_status(home_context(home))["processes"] if one["name"] == name)
    return int(found["pid"] or 0)


def kill(home: Home) -> str:
    """SIGKILL to the guarded process."""
    pid = pid_of(home)
    os.kill(pid, signal.SIGKILL)
    return f"kill -9 {pid}"


def stop_answering(home: Home) -> str:
    """SIGSTOP to the guarded server: it lives and does not answer."""
    pid = pid_of(home)
    os.kill(pid, signal.SIGSTOP)
    return f"kill -STOP {pid}: it lives, but answers nobody"


def die_again(home: Home) -> str:
    """Nothing: it dies by itself."""
    return "a program that ends at once, every time"


def kill_daemon(home: Home) -> str:
    """SIGKILL to the daemon, then to what it guards, then the daemon is started again."""
    daemon, guarded = int(home_status(home_context(home))["daemon"]["pid"] or 0), pid_of(home)
    os.kill(daemon, signal.SIGKILL)
    until(lambda: holder(home.lock) is None, "the daemon's death")
    os.kill(guarded, signal.SIGKILL)
    daemon_process(home).start()
    return f"kill -9 {daemon} (the daemon), kill -9 {guarded}, upulse daemon start"


def write_error(home: Home) -> str:
    """An error line in a followed log."""
    with (home.path / "agent.log").open("a") as log:
        log.write("2026-01-31 03:00:00 ERROR the model does not answer\n")
    return 'echo "ERROR the model does not answer" >> agent.log'


AT_ONCE = 'restart = { max = 1000, backoff = "0s", healthy_after = "0s", grace = "0s" }'
SLEEPER = f'[[process]]\nname = "demo"\nstart = ["sleep", "infinity"]\n{AT_ONCE}\n'
SERVER = """
[watch]
process_interval = "200ms"
[[process]]
name = "demo"
start = [{python}, "-m", "http.server", "{port}", "--bind", "127.0.0.1"]
tcp = "127.0.0.1:{port}"
restart = {{ healthy_after = "0s", grace = "2s" }}
"""
FLAPPING = """
[[process]]
name = "demo"
start = ["false"]
restart = { max = 3, backoff = "100ms", grace = "0s", healthy_after = "0s" }
"""
FOLLOWED = SLEEPER + '[[log]]\npath = "{home}/agent.log"\nkeywords = ["ERROR"]\n'

SCENES: Mapping[str, Scene] = {
    "kill": Scene("a guarded process is killed, and is back at once", SLEEPER, kill, kinds("process-died", "process-up")),
    "hang": Scene(
        "a server lives but does not answer: probes agree first, then it is replaced",
        SERVER, stop_answering, kinds("process-died", "process-up"),
    ),
    "flap": Scene(
        "a program dies every time: patience grows, and a person is told once",
        FLAPPING, die_again, lambda events: any(event["subject"] == "notify:flapping:demo" for event in events),
        from_the_start=True,
    ),
    "crash": Scene(
        "the daemon itself is killed: nothing is lost, and it sees at its start what died meanwhile",
        SLEEPER, kill_daemon, kinds("daemon-started", "process-died", "process-up"),
    ),
    "log": Scene(
        "an error is written to a followed log: it is noticed, and told",
        FOLLOWED, write_error, kinds("log-matched", "effect"),
    ),
}  # fmt: skip


def scene_called(name: str) -> Scene:
    """The scene of this name; raises UnknownName with the nearest one."""
    if name not in SCENES:
        raise UnknownName("scene", name, SCENES)
    return SCENES[name]


@contextmanager
def stage(scene: Scene) -> Iterator[Home]:
    """A home for this scene with its daemon running; everything of it is gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="pulse-demo-"))
    home = Home(place / "home")
    home.create()
    settings = scene.settings
    for name, value in (
        ("python", f'"{sys.executable}"'),
        ("port", str(free_port())),
        ("home", str(home.path)),
    ):
        settings = settings.replace(f"{{{name}}}", value)
    home.config.write_text(settings.replace("{{", "{").replace("}}", "}"))
    try:
        daemon_process(home).start()
        yield home
    finally:
        try:
            daemon_process(home).stop(PATIENCE)
        finally:  # only now nothing more is started
            until(lambda: not ended(home), "the end of what was started")
            shutil.rmtree(place, ignore_errors=True)


def ended(home: Home) -> Sequence[int]:
    """Kill what the home's daemons have started, with what that has started; the pids of those that lived."""
    left = [one.pid for one in asyncio.run(marked(f"demo@{home.path}", PROCESS))]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left


class Answer(NamedTuple):
    """What was broken, every event since, and the incidents among them."""

    broken: str
    events: Sequence[Told]
    incidents: Sequence[Told]


def played(scene: Scene, home: Home) -> Answer:
    """Break it, and wait for the answer."""
    since = 0
    if not scene.from_the_start:
        until(lambda: ready(home), "the guarded process to be up")
        since = head(home)
    broken = scene.break_it(home)
    until(lambda: scene.answered(events_since(home, since)), "the answer")
    time.sleep(AFTERMATH)
    with SqliteEventReader(home.path) as log:
        wanted = EventQuery(since_seq=since)
        stories = [one.spelled() for one in incidents_in(log, wanted, SystemClock().now())]
    return Answer(broken, events_since(home, since), stories)


def ready(home: Home) -> bool:
    """Whether everything guarded is up, and that is on disk already: the daemon knows it a moment earlier."""
    with SqliteEventReader(home.path) as log:
        if not any(log.events(EventQuery(kinds=("process-up",)), limit=1)):
            return False
    return all(one["state"] == "up" for one in home_status(home_context(home))["processes"])


def head(home: Home) -> int:
    """The last row of the log."""
    with SqliteEventReader(home.path) as log:
        return log.head().seq


def events_since(home: Home, seq: int) -> Sequence[Told]:
    """What was recorded after a row."""
    with SqliteEventReader(home.path) as log:
        return [row.spelled() for row in log.events(EventQuery(since_seq=seq))]


def until(true: Callable[[], bool], what: str) -> None:
    """Wait until it is so; raises PulseError if it does not come."""
    last = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > last:
            raise PulseError(f"the scene waited {PATIENCE:g} s in vain for {what}")
        time.sleep(LOOK)


def free_port() -> int:
    """A TCP port that nobody listens on at this moment."""
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
