"""Scenes that break something harmless in a home of their own, and what Pulse answers."""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pulse_core.app.context import HomeContext
from pulse_core.app.incidents import incidents_in
from pulse_core.app.status import home_status
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.ports.readers import EventQuery

PATIENCE = 30.0
LOOK = 0.02
AFTERMATH = 0.3
"""Seconds in which what still follows belongs to the picture."""

Told = Mapping[str, Any]
Seen = Callable[[Sequence[Told]], bool]


class DemoStage(NamedTuple):
    """The home of a scene, whose daemon runs, and what starts that anew."""

    home: HomeContext
    start_daemon: Callable[[], object]


@dataclass(frozen=True)
class Scene:
    """A scene. about: what it shows; settings: of its home, where {home} is its directory; break_it: what goes
    wrong, after which `answered` looks for the answer among the events since (or since the start)."""

    about: str
    settings: str
    break_it: Callable[[DemoStage], str]
    answered: Seen
    from_the_start: bool = False


def kinds(*wanted: str) -> Seen:
    """Whether events of these kinds have come, one after the other."""

    def seen(events: Sequence[Told]) -> bool:
        come = (event["kind"] for event in events)
        return all(kind in come for kind in wanted)  # each search goes on behind what the last one found

    return seen


def pid_of(home: HomeContext, name: str = "demo") -> int:
    """The pid of a guarded process that is up; raises PulseError where none is known, since 0 would be our own group."""
    found = next(one for one in home_status(home)["processes"] if one["name"] == name)
    if found["pid"] is None:
        raise PulseError(f"the scene found {name} {found['state']}: {found['why']}")
    return int(found["pid"])


def kill(stage: DemoStage) -> str:
    """Kill the guarded process."""
    pid = pid_of(stage.home)
    os.kill(pid, signal.SIGKILL)
    return f"kill -9 {pid}"


def stop_answering(stage: DemoStage) -> str:
    """Have the guarded server live and not answer."""
    pid = pid_of(stage.home)
    os.kill(pid, signal.SIGSTOP)
    return f"kill -STOP {pid}: it lives, but answers nobody"


def die_again(stage: DemoStage) -> str:
    """Nothing: it dies by itself."""
    return "a program that ends at once, every time"


def kill_daemon(stage: DemoStage) -> str:
    """Kill the daemon, then what it guards; then start the daemon again."""
    home = stage.home
    guarded, daemon = pid_of(home), home_status(home)["daemon"]["pid"]
    if daemon is None:
        raise PulseError("the scene's daemon has ended by itself")
    os.kill(daemon, signal.SIGKILL)
    wait_until(lambda: home.daemon.lock_holder() is None, "the daemon's death")
    os.kill(guarded, signal.SIGKILL)
    stage.start_daemon()
    return f"kill -9 {daemon} (the daemon), kill -9 {guarded}, upulse daemon start"


def write_error(stage: DemoStage) -> str:
    """Write an error line into a followed log."""
    with (stage.home.layout.path / "agent.log").open("a") as log:
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
restart = {{ max = 1000, healthy_after = "0s", grace = "2s" }}
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


class Answer(NamedTuple):
    """What was broken, every event since, and the incidents among them."""

    broken: str
    events: Sequence[Told]
    incidents: Sequence[Told]


def play(scene: Scene, stage: DemoStage) -> Answer:
    """Break it, and wait for the answer."""
    home, since, at = stage.home, 0, None
    if not scene.from_the_start:
        wait_until(lambda: ready(home), "the guarded process to be up")
        with home.events() as log:
            since = log.head().seq
        at = home.clock.now().at
    broken = scene.break_it(stage)
    wait_until(lambda: scene.answered(events_since(home, since)), "the answer")
    time.sleep(AFTERMATH)
    with home.events() as log:
        stories = [one.spelled() for one in incidents_in(log, at, home.clock.now())]
    return Answer(broken, events_since(home, since), stories)


def ready(home: HomeContext) -> bool:
    """Whether everything guarded is up, and that is on disk already: the daemon knows it a moment earlier."""
    with home.events() as log:
        if not any(log.events(EventQuery(kinds=("process-up",)), limit=1)):
            return False
    return all(one["state"] == "up" for one in home_status(home)["processes"])


def events_since(home: HomeContext, seq: int) -> Sequence[Told]:
    """What was recorded after a row."""
    with home.events() as log:
        return [row.spelled() for row in log.events(EventQuery(since_seq=seq))]


def wait_until(true: Callable[[], bool], what: str) -> None:
    """Wait until it is so; raises PulseError if it does not come."""
    last = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > last:
            raise PulseError(f"the scene waited {PATIENCE:g} s in vain for {what}")
        time.sleep(LOOK)
