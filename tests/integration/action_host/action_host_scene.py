"""Engines with watchers and executors on disk, and hands that run them."""

import asyncio
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulse_adapters.action_host.hosts import ChildActionHost, ChildActionHosts
from pulse_adapters.action_host.process import ActionChild
from pulse_adapters.action_host.supervisor import ChildSupervisor
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Sample, Window
from pulse_core.ports.engine import EngineFault, ReservedNames, Revision
from pulse_core.ports.executor import Result

HEAD = "import asyncio, os, subprocess, sys, time\nfrom pulse_core import *\nfrom pydantic import BaseModel\n"
HERE = "# here"
MEMORY = 256
"""MiB beyond what a child starts with."""


def watcher(
    body: str, name: str = "queue", interval: float = 60.0, timeout: float = 20.0, **more: str
) -> str:
    """The source of a watcher whose look has this body."""
    return f"""
class {name.title()}:
    name = key = "{name}"
    interval, timeout = {interval}, {timeout}

    def __init__(self):
        self.nudge = asyncio.Event()

    async def collect(self):
{_indented(body)}

    def should_wake(self, window):
{_indented(more.get("wake", "return False"))}
"""


def executor(body: str, name: str = "beep", **more: str) -> str:
    """The source of an executor whose deed has this body. more: policy, verify, params, check."""
    return f"""
class {name.title()}Params(BaseModel):
{_indented(more.get("params", "path: str = ''"), 4)}


class {name.title()}:
    action, params = "{name}", {name.title()}Params

    def policy(self, params):
        return {more.get("policy", "Policy(Safety.AT_MOST_ONCE, timeout=20)")}

    def check(self, params):
{_indented(more.get("check", "pass"))}

    async def execute(self, effect, params, event):
{_indented(body)}

    async def verify(self, effect, params, event):
{_indented(more.get("verify", "return None"))}
"""


def _indented(body: str, by: int = 8) -> str:
    return textwrap.indent(textwrap.dedent(body).strip(), " " * by)


def written(root: Path, *sources: str, before: str = "") -> Revision:
    """An engine with these in `own.py`, all listed."""
    whole = HEAD + before + "\n".join(sources)
    names = [line[6:-1] for line in whole.splitlines() if line.startswith("class ") and "(" not in line]
    looks = [
        name for name in names if "async def collect" in whole.split(f"class {name}:")[1].split("class ")[0]
    ]
    deeds = [name for name in names if name not in looks]
    root.mkdir(parents=True, exist_ok=True)
    (root / "own.py").write_text(whole)
    (root / "engine.py").write_text(
        f"from own import *\nRULES = []\nWATCHERS = [{', '.join(f'{name}()' for name in looks)}]\n"
        f"EXECUTORS = [{', '.join(f'{name}()' for name in deeds)}]\n"
    )
    return Revision("0" * 40, str(root))


def place_of(root: Path, mark: str = HERE) -> str:
    """Where the marked line of `own.py` is."""
    lines = (root / "own.py").read_text().splitlines()
    return f"own.py:{next(number for number, line in enumerate(lines, 1) if mark in line)}"


class Ticking:
    """A clock of which a test knows the boot."""

    def now(self) -> Moment:
        """The moment, by the machine's clock."""
        return Moment(time.time_ns() // 1000, "boot", time.monotonic_ns() // 1000)


@dataclass
class Scene:
    """Hands at work, and what was told of them."""

    faults: list[EngineFault] = field(default_factory=list)
    windows: dict[str, Window] = field(default_factory=dict)
    hands: ChildActionHost = field(default_factory=ChildActionHost)

    @property
    def supervisor(self) -> ChildSupervisor:
        """What keeps the child running."""
        assert self.hands.supervisor is not None
        return self.hands.supervisor

    @property
    def child(self) -> ActionChild:
        """The child, or the last one."""
        return self.supervisor.child

    @property
    def pid(self) -> int:
        """The child's process."""
        return self.child.pid

    async def look(self, name: str = "queue") -> Any:
        """Have a watcher look, and keep its sample as the daemon does; the data."""
        one = next(watcher for watcher in self.hands.watchers if watcher.name == name)
        reading = await one.collect()
        window = self.windows.get(one.key, Window())
        newest = window.last.id + 1 if window.last else 1
        self.windows[one.key] = window.plus(Sample(newest, one.key, Ticking().now(), reading.data))
        return reading.data

    async def act(self, action: str = "beep", **params: Any) -> Result:
        """Have an executor act."""
        one, (effect, event) = self.hands.executors[action], wished(action, params)
        return await one.execute(effect, one.params.model_validate(params), event)


def wished(action: str, params: dict[str, Any]) -> tuple[Effect, Event]:
    """An effect and its event."""
    effect = Effect(action=action, key=action, params=params)
    data = effect.model_dump_json(exclude_defaults=True)
    return effect, Event(1, "effect-id", 1, "boot", 1, "effect", action, "pulse", "host", None, data)


@asynccontextmanager
async def at_work(revision: Revision, taken: ReservedNames | None = None, **how: Any) -> AsyncIterator[Scene]:
    """Hands that have loaded a revision."""
    scene = Scene()
    host = ChildActionHosts(Ticking(), lambda: scene.windows, **{"load": 60.0, **how})
    scene.hands = await host.start(revision, MEMORY, taken or ReservedNames(), scene.faults.append)
    try:
        yield scene
    finally:
        await scene.hands.close()


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until it is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to be"
        await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    """Whether there is such a process that is not dead."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return False
    return state not in "ZX"
