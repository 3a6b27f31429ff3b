"""Staging as it is edited: loaded at every save, folded at every tick, and told. Nothing that it wishes is done here."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from os.path import relpath

from pulse_core.engine.effect_filter import filter_effects
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.ports import CannotLoad, Hosts, Loaded, Revision, RuleHost
from pulse_core.projections import Snapshot
from upulse_cli.engine.dev_news import Began, Refused, Remark, Seen, Tell, seen_by
from upulse_cli.engine.own_hands import OwnHands, merged
from upulse_cli.engine.past import Then
from upulse_cli.engine.present import Present

STAGING = "staging"
Execute = Callable[[Sequence[Effect]], Awaitable[Sequence[str]]]
"""Has effects done; what is to be said of it."""


@dataclass
class _Course:
    """Where the host stands: the last two snapshots, and what came while another host was starting."""

    source: Present
    prev: Snapshot
    curr: Snapshot
    late: list[Event] | None = None


class Dev:
    """Runs the tree at `path`. tell: hears all there is to say; execute: is given each wish when it begins.

    hands: run its watchers, whose samples its rules see; None: they are not asked.
    """

    def __init__(
        self,
        hosts: Hosts,
        path: str,
        tell: Tell,
        execute: Execute | None = None,
        hands: OwnHands | None = None,
    ) -> None:
        self.hosts, self.path, self.tell, self.execute, self.hands = hosts, path, tell, execute, hands
        self._host: RuleHost | None = None
        self._course: _Course | None = None
        self._loading, self._folding = asyncio.Lock(), asyncio.Lock()
        self._going_on: frozenset[str] = frozenset()

    async def follow(self, source: Present) -> None:
        """Load the tree as it is, and fold what this source shows until it ends."""
        await self.begin(source)
        async for then in source.ticks():
            await self.take(then)

    async def begin(self, source: Present) -> None:
        """Load the tree as it is, and fold the first snapshot of this source."""
        await self.close()
        self._course = _Course(source, source.first, source.first)
        self.tell(Remark(source.words))
        await self.load(())

    async def load(self, files: Collection[str]) -> None:
        """Start a host on what is saved, and let it take over when it stands."""
        async with self._loading:
            if (course := self._course) is None:
                return
            began = time.monotonic()
            try:
                host = await self._started(course)
            except CannotLoad as error:
                course.late = None
                is_up = self._host is not None and self._host.alive
                self.tell(Refused(str(error), files, is_up))
            else:
                old = await self._turn(host, course)
                self.tell(Began(host.loaded, files, time.monotonic() - began))
                await self._again(course)
                if old:
                    await old.close()
                await self._sense(host.loaded)

    async def _sense(self, loaded: Loaded) -> None:
        """Have the watchers of what was loaded asked from now on."""
        if self.hands is None:
            if loaded.watchers:
                self.tell(Remark(f"not asked now: {', '.join(loaded.watchers)}"))
        elif loaded.watchers or loaded.executors:
            await self.hands.load(self.path)
        else:
            await self.hands.close()

    async def sensed(self) -> None:
        """Fold the last snapshot again, with what the tree's own watchers brought since."""
        async with self._folding:
            if (course := self._course) and self._host and self._host.alive:
                course.prev, course.curr = course.curr, self._whole(course.curr)
                await self._fold(course, is_again=True)

    def _whole(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the windows of the tree's own watchers."""
        own = self.hands.windows if self.hands else {}
        return replace(snapshot, windows=merged(snapshot.windows, own)) if own else snapshot

    async def _started(self, course: _Course) -> RuleHost:
        course.late = []
        revision = Revision(STAGING, self.path)
        return await self.hosts.start(revision, course.curr, course.source.history, {})

    async def _turn(self, host: RuleHost, course: _Course) -> RuleHost | None:
        """Tell the new host what it missed, and let it fold from now on; the one that is not wanted any more."""
        async with self._folding:
            host.feed(course.late or ())
            course.late = None
            if self._course is not course:
                return host  # the source has changed meanwhile
            old, self._host = self._host, host
            return old

    async def _again(self, course: _Course) -> None:
        """Show what the new rules say of the last snapshot, without waiting for the next one."""
        async with self._folding:
            self._going_on = frozenset()
            if self._course is course:
                await self._fold(course, is_again=True)

    async def take(self, then: Then) -> None:
        """Fold one more snapshot; a host that has ended is replaced first."""
        course = self._course
        assert course is not None
        async with self._folding:
            course.prev, course.curr = course.curr, self._whole(then.snapshot)
            if course.late is not None:
                course.late += then.news
            if self._host and self._host.alive:
                self._host.feed(then.news)
                return await self._fold(course, is_again=False)
        if self._host and not self._loading.locked():
            await self.load(())  # it loaded once, and may do so again
        return None

    async def _fold(self, course: _Course, is_again: bool) -> None:
        if self._host is None:
            return
        began, curr = time.monotonic(), course.curr
        insight = filter_effects(await self._host.fold(course.prev, curr), curr)
        own = self.hands.params if self.hands else {}
        seen = seen_by(insight, course.prev, curr, time.monotonic() - began, is_again, own)
        self.tell(seen)
        await self._execute(seen)

    async def _execute(self, seen: Seen) -> None:
        news = [wish.effect for wish in seen.wishes if wish.state == "new"]
        begun = [effect for effect in news if effect.key not in self._going_on]
        self._going_on = frozenset(effect.key for effect in news)
        if self.execute and begun:
            for words in await self.execute(begun):
                self.tell(Remark(words))

    async def close(self) -> None:
        """End the host."""
        self._course = None
        async with self._folding:
            host, self._host = self._host, None
        if self.hands:
            await self.hands.close()
        if host:
            await host.close()


async def saves(path: str) -> AsyncIterator[Collection[str]]:
    """The files that were saved, from the tree on, each time that some were."""
    from watchfiles import DefaultFilter, awatch  # costs 60 ms

    async for changes in awatch(path, watch_filter=DefaultFilter(), debounce=50, step=10):
        yield sorted({_within(path, changed) for _, changed in changes})


def _within(path: str, file: str) -> str:
    return relpath(file, path)
