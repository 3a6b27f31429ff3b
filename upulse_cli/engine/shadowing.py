"""The shadow itself, a process in the background: other rules on the daemon's own ticks, and nothing comes of it."""

import argparse
import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from pulse_adapters.config.home import Home
from pulse_adapters.git.repository import Repository
from pulse_adapters.ipc.lock import HomeLock
from pulse_core import __version__
from pulse_core.engine.effect_filter import filter_effects
from pulse_core.engine.engine_context import restarts
from pulse_core.model.errors import HomeBusy, PulseError
from pulse_core.model.moment import iso
from pulse_core.ports import EngineFault, FoldResult, Hosts, Revision, RuleHost
from pulse_core.projections import Snapshot
from upulse_cli.engine.comparing import STAGING, revision_called
from upulse_cli.engine.diary import LOCK, Diary
from upulse_cli.engine.past import Then
from upulse_cli.engine.present import Beside
from upulse_cli.engine.trial import run
from upulse_cli.engine.wishes import through_survival, wished
from upulse_cli.wiring.engine import rule_hosts
from upulse_cli.wiring.user_rules import kept_of

EVERY = 15.0
"""Seconds between two lines that say how far the shadow is."""
FIRST = 10
"""Ticks after each of which that is said, so that nobody who has just begun one wonders."""
MOST_FAULTS = 100
"""Different ones that are written down."""
READY = "ready"


class What(NamedTuple):
    """What is run as a shadow, and where it is told."""

    home: Home
    revision: Revision
    diary: Diary


class Shadow:
    """Folds each tick as it is recorded. Its host is started again when it ends, the later the oftener that happens."""

    def __init__(self, what: What, hosts: Hosts, source: Beside) -> None:
        self.what, self.hosts, self.source = what, hosts, source
        self._prev = source.first
        self._host: RuleHost | None = None
        self._restarts = restarts()
        self._ticks = 0
        self._errors, self._faults = 0, set[str]()
        self._going_on: frozenset[str] = frozenset()
        self._told = 0.0

    async def begin(self) -> None:
        """Start the host; raises CannotLoad."""
        self._host = await self._started()
        first, rules = self.source.first, list(self._host.loaded.rules)
        state = {"pid": os.getpid(), "tick": first.tick, "at": first.now.at, "rules": rules}
        self.what.diary.begin(revision=self.what.revision.commit, **state, **lying(self.what))
        self._tell()

    async def follow(self) -> None:
        """Fold each tick, for ever."""
        async for then in self.source.ticks():
            if await self._is_up():
                await self._take(then)
            self._prev = then.snapshot
            if self._ticks <= FIRST or time.monotonic() - self._told >= EVERY:
                self._tell()

    async def end(self, why: str) -> None:
        """Say how far it came, and end the host."""
        self._tell()
        self.what.diary.write("ended", why=why)
        if self._host:
            await self._host.close()

    async def _started(self) -> RuleHost:
        kept = kept_of(self.what.home)
        return await self.hosts.start(self.what.revision, self._prev, self.source.history, kept)

    async def _is_up(self) -> bool:
        """Whether there is a host, if need be a new one."""
        if self._host and self._host.alive:
            return True
        now = time.monotonic()
        if self._host:
            await self._host.close()
            self._host = None
            self._restarts.ended(now)
        if now < self._restarts.due:
            return False
        try:
            self._host = await self._started()
            self._restarts.started(now)
        except PulseError as error:
            self._write_faults((EngineFault("engine", str(error)),), self._prev)
            self._restarts.failed(now)
        return self._host is not None

    async def _take(self, then: Then) -> None:
        assert self._host is not None
        self._host.feed(then.news)
        curr = then.snapshot
        insight = filter_effects(await self._host.fold(self._prev, curr), curr)
        self._ticks += 1
        self._write_wishes(then, insight)
        self._write_faults(insight.faults, curr)

    def _write_wishes(self, then: Then, insight: FoldResult) -> None:
        """Those that would be recorded if it were not a shadow; what is wished tick after tick is one wish."""
        curr: Snapshot = then.snapshot
        verdict = insight.verdict
        passed = through_survival(self._prev, curr, verdict) if verdict.effects else ()
        fresh = [effect for effect in passed if effect.key not in curr.effects.keys]
        for effect in fresh:
            if effect.key not in self._going_on:
                self.what.diary.write("wish", **wished(effect, then)._asdict())
        self._going_on = frozenset(effect.key for effect in fresh)

    def _write_faults(self, faults: Sequence[EngineFault], at: Snapshot) -> None:
        """Each is counted, and written down the first time."""
        self._errors += len(faults)
        for fault in faults:
            words = f"{fault.whose}: {fault.message}"
            if words not in self._faults and len(self._faults) < MOST_FAULTS:
                self._faults.add(words)
                self.what.diary.write("fault", words=words, tick=at.tick, at=iso(at.now.at))

    def _tell(self) -> None:
        self._told = time.monotonic()
        last = self._prev
        self.what.diary.write(
            "through", tick=last.tick, at=last.now.at, ticks=self._ticks, errors=self._errors
        )


def lying(what: What) -> dict[str, object]:
    """For staging: the commit that lies there, and which files differ from it."""
    if what.revision.commit != STAGING:
        return {}
    staging = Repository(what.home.path).staging()
    return {"commit": staging.commit, "dirty": list(staging.dirty)}


async def shadowing(what: What, ready: Callable[[], None]) -> None:
    """Run the shadow until it is cancelled; `ready` is called when its rules are loaded."""
    source, why = Beside(what.home, is_patient=True), "it failed"
    shadow = Shadow(what, rule_hosts(what.home), source)
    try:
        await shadow.begin()
        ready()
        try:
            await shadow.follow()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise
        except asyncio.CancelledError:
            why = "it was stopped"
            raise
        finally:
            await shadow.end(why)
    finally:
        source.close()


def main() -> None:
    """Be a shadow. Whoever has started it reads one line: `ready`, or why not."""
    parser = argparse.ArgumentParser(prog="upulse_cli.engine.shadowing", description=__doc__)
    parser.add_argument("--home", required=True)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--tell", type=int, required=True)
    asked = parser.parse_args()
    home = Home.resolve(asked.home)

    def tell(words: str) -> None:
        with suppress(OSError):
            os.write(asked.tell, words.encode())
            os.close(asked.tell)

    os.nice(5)
    try:
        with HomeLock(home.run / LOCK, __version__):
            what = What(home, revision_called(home, asked.engine), Diary(home.path))
            run(shadowing(what, lambda: tell(READY)))
    except HomeBusy as error:
        tell(f"another one runs (process {error.pid})")
        raise
    except Exception as error:
        tell(str(error) if isinstance(error, PulseError) else f"{type(error).__name__}: {error}")
        raise


if __name__ == "__main__":
    main()
