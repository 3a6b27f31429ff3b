"""Engines that try to hold the daemon's loop, and a real daemon in this process that runs one of them."""

import asyncio
import textwrap
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.open_log import Opening
from pulse_core.daemon.daemon import Daemon
from tests.benchmarks.harness import children_of
from tests.repositories import repository_of
from upulse_cli.wiring.daemon import real_daemon

SETTLE = 30.0
"""Seconds in which the engine must be loaded."""
AUTHOR = "Mallory <mallory@example.org>"
CONFIG = """
[resources]
clean = ["/var/cache/of-nobody"]

[executors.run-command]
allow = ["/bin/true"]

[[process]]
name = "guarded"
start = ["sleep", "9471"]
"""
HEAD = "import os\nfrom pulse_core import *\n"
WISHES = {
    "run-command with long paths": "wish('run-command', n, argv=['/' + 'x/../' * 100 + str(n)])",
    "run-command with names that are nowhere": "wish('run-command', n, argv=['x' * 400 + str(n)])",
    "clean-paths with long paths": "wish('clean-paths', n, roots=['/' + 'x/../' * 100 + str(n)])",
    "clean-paths with many paths": "wish('clean-paths', n, roots=['/x'] * 100)",
    "restarts of one process": "wish('restart-process', n, process='guarded')",
    "restarts of what is no name": "wish('restart-process', n, process=['guarded'])",
    "notices": "wish('notify', n, title='t', text='x' * 400)",
    "notices without a title": "wish('notify', n, text='x' * 400)",
    "actions that nobody has": "wish('x' * 200, n)",
    "survival's own keys": "Effect(action='notify', key=f'notify:disk:{n}', params={'title': 't'})",
    "keys that are too long": "Effect.model_construct(action='notify', key='x' * 501)",
    "params of many levels": "wish('notify', n, title=deep(40))",
    "nothing but true": "wish('run-command', n, argv=['/bin/true'])",
}
"""What a rule wishes 100 times, as often as it may, in every tick; survival and the gate refuse nearly all of it."""
RULES = {
    "a verdict of 500 KB": "return Verdict((wish('notify', 1, title='t', more=['x'] * 120_000),), 1)",
    "numbers of 500 KB": "return Verdict((wish('notify', 1, title='t', more=list(range(75_000))),), 1)",
    "notes without end": "return Verdict(notes=('x' * 2_000,) * 240, tick_ms=1)",
    "errors without end": "raise ValueError('x' * 100_000 + str(curr.tick))",
    "inner without end": "for _ in range(100):\n    verdict = await inner(prev, curr)\nreturn verdict.within(1)",
    "a message of 1 MB": "body = b'[' * 1_000_000\nos.write(3, len(body).to_bytes(4, 'big') + body)\nreturn Verdict()",
    "a message of many objects": (
        "body = b'{\"id\": 9' + b',\"a\":[{}]' * 100_000 + b'}'\n"
        "os.write(3, len(body).to_bytes(4, 'big') + body)\nreturn Verdict()"
    ),
}
ACTIONS = {
    "samples of 60 KB": "return Reading({str(n): 'x' * 50 for n in range(1_000)})",
    "samples of long texts": "return Reading({'x': 'x' * 60_000})",
}
BASE = """
def wish(action, n, **params):
    return Effect.model_construct(action=action, key=f'{action[:100]}-{n}', params=params)

def deep(levels):
    return [deep(levels - 1)] if levels else []

"""


def engines() -> Mapping[str, Mapping[str, str]]:
    """The files of each hostile engine, by its name."""
    found = {f"100 times in a tick: {name}": rules(wishing(wish)) for name, wish in WISHES.items()}
    found |= {name: rules(body) for name, body in RULES.items()}
    return found | {name: watchers(body) for name, body in ACTIONS.items()}


def wishing(wish: str, times: int = 100) -> str:
    """The body of a rule that wishes this so often, besides what inner rules wish, and soon again."""
    return f"return (await inner(prev, curr)).plus(*({wish} for n in range({times}))).within(1)"


def rules(*bodies: str) -> Mapping[str, str]:
    """An engine of rules with these bodies, the first one outermost."""
    names = [f"rule_{n}" for n in range(len(bodies))]
    told = zip(names, bodies, strict=True)
    source = "\n".join(
        f"async def {name}(prev, curr, inner):\n{textwrap.indent(body, '    ')}\n" for name, body in told
    )
    listed = f"from rules.own import {', '.join(names)}\nRULES = [{', '.join(names)}]\n"
    return {"engine.py": listed, "rules/own.py": HEAD + BASE + source}


def watchers(body: str, count: int = 8) -> Mapping[str, str]:
    """An engine of watchers with this body, as often as they may look."""
    source = f"""
import asyncio

class Own:
    interval, timeout = 1.0, 1.0

    def __init__(self, n):
        self.name = self.key = f"own-{{n}}"
        self.nudge = asyncio.Event()

    async def collect(self):
        self.nudge.set()
{textwrap.indent(body, " " * 8)}

    def should_wake(self, window):
        return True
"""
    listed = f"from own import Own\nRULES = []\nWATCHERS = [Own(n) for n in range({count})]\n"
    return {"engine.py": listed, "own.py": HEAD + source}


HARMLESS = rules("return await inner(prev, curr)")


@asynccontextmanager
async def hostile_daemon(path: Path, files: Mapping[str, str]) -> AsyncIterator[Daemon]:
    """A whole daemon in this process, whose engine has these files; it has ended afterwards."""
    home, source = Home(path / "home"), path / "engine"
    home.create()
    home.config.write_text(CONFIG)
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    repository_of(home.path, source, AUTHOR)
    with children_of(home):
        async with running_daemon(home) as daemon:
            yield daemon


@asynccontextmanager
async def running_daemon(home: Home) -> AsyncIterator[Daemon]:
    """A daemon of this home that has loaded its engine."""
    stop = asyncio.Event()
    async with real_daemon(home, Opening()) as daemon:
        running = asyncio.create_task(daemon.run(stop), name="daemon")
        try:
            async with asyncio.timeout(SETTLE):
                assert daemon.engine_controller is not None
                while not running.done() and daemon.engine_controller.host_supervisor.running is None:
                    await asyncio.sleep(0.01)
            yield daemon
        finally:
            stop.set()
            await running
