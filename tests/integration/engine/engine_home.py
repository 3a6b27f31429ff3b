"""A home whose staging holds one file of rules, and an author who reads what `upulse dev` makes of it."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pulse_adapters.config.home import Home
from pulse_adapters.git.create_repository import template_folder
from pulse_core.app.engine.dev_reports import DevReport
from pulse_core.app.engine.dev_session import DevTarget, follow_staging
from pulse_core.app.state import current_state
from pulse_core.projections.engine import Engine
from tests.integration.cli.cli_home import CliHome
from tests.integration.rule_host.rule_host_engines import written
from tests.repositories import repository_of
from tests.types_cache import warm
from upulse_cli.wiring.dev import dev_target
from upulse_cli.wiring.home import home_context

ADA = "Ada Lovelace <ada@example.org>"
PATIENCE = 60.0
PATIENT = '[engine]\ndeadline = "20s"\n'
"""No test is about the deadline, and the machine may be busy."""
ALLOWED = '[executors.run-command]\nallow = ["/bin/true"]\n'
"""What `WISHING` wishes may be run."""
T = TypeVar("T", bound=DevReport)

CALM = "async def calm(prev, curr, inner):\n    return await inner(prev, curr)\n"
WISHING = """
async def wishing(prev, curr, inner):
    wish = Effect(action="run-command", key="my:wish", params={"argv": ["/bin/true"]}, reason="it is time")
    return (await inner(prev, curr)).plus(wish)
"""


def new_home(path: Path, source: str = CALM, config: str = "", engine: str = "") -> CliHome:
    """A home whose engine is one file of rules, in production and in staging; engine: what lists them, if not all."""
    home = Home(path)
    home.create()
    home.config.write_text(config if "[engine]" in config else f"{PATIENT}{config}")
    template = path / "template"
    shutil.copytree(template_folder(), template, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    written(template, source, engine)
    repository_of(path, template, ADA)
    warm(path / "cache")
    return CliHome(path)


def save(home: CliHome, source: str) -> None:
    """Other rules in staging."""
    written(home.path / "staging", source)


def spoil(home: CliHome) -> None:
    """Leave something in staging that is no Python, in the second line of its rules."""
    (home.path / "staging" / "rules" / "own.py").write_text("# half a thought\ndef (\n")


def engine_of(home: Home) -> Engine:
    """What the log says of the engine."""
    return current_state(home_context(home)).engine


class Ear:
    """Hears what is told, and waits for what is to come."""

    def __init__(self) -> None:
        self.heard: list[DevReport] = []
        self._news = asyncio.Event()

    def hear(self, news: DevReport) -> None:
        self.heard.append(news)
        self._news.set()

    async def next(self, kind: type[T], fits: Callable[[T], bool] = lambda news: True) -> T:
        """The next news of a kind that was not taken yet; what came before it is passed over."""
        async with asyncio.timeout(PATIENCE):
            while True:
                while self.heard:
                    news = self.heard.pop(0)
                    if isinstance(news, kind) and fits(news):
                        return news
                self._news.clear()
                await self._news.wait()


def tried(home: Path, ear: Ear) -> DevTarget:
    """What `upulse dev` tries, told to this ear."""
    return replace(dev_target(home_context(Home(home)), does_execute=False), tell=ear.hear)


@asynccontextmanager
async def author(home: CliHome) -> AsyncIterator[Ear]:
    """`upulse dev` at work in this process."""
    ear = Ear()
    target = tried(home.path, ear)
    work = asyncio.create_task(follow_staging(target), name="dev")
    try:
        yield ear
    finally:
        work.cancel()
        await asyncio.wait([work])
        if not work.cancelled():
            work.result()
