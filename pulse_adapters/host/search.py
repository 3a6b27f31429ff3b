"""Finding processes by their command line or by a marker in their environment, in one pass over /proc."""

import asyncio
import os
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from pulse_adapters.host.command_lines import CommandLines, text
from pulse_adapters.host.examination import Question
from pulse_adapters.host.expression import expression
from pulse_adapters.host.judge import Judge
from pulse_adapters.host.look import Look, Suspect
from pulse_adapters.host.proc import MARKER, carries, entry, pids
from pulse_core.ports import ProcessId

BREATH = 0.001
"""Seconds of searching after which the event loop is given a turn."""
_SLICE = 50  # processes after which the event loop is given a turn in any case: a fraction of a millisecond


class Hits(NamedTuple):
    """Live processes, oldest first: those that match, those of which it is not known, and those of which it won't be.

    unsure: the search in their command line is not over, or is too long, as it is for those in `hopeless`.
    """

    found: tuple[ProcessId, ...] = ()
    unsure: tuple[ProcessId, ...] = ()
    hopeless: tuple[ProcessId, ...] = ()


class Search:
    """Looks for processes whose argv, joined by spaces, a pattern is found in, as `re.search` would.

    It never holds the event loop longer than a few milliseconds: a search that may take longer is the judge's.
    Pulse itself never matches, nor its command line, nor what runs for it.
    """

    def __init__(self) -> None:
        self._lines = CommandLines()
        self._judge = Judge()

    async def find(self, patterns: Mapping[str, str], besides: Collection[int] = ()) -> Mapping[str, Hits]:
        """For each name who matches its pattern; nothing that runs in one of the sessions `besides` does."""
        look = await self._pass(patterns)
        await self._judge.ask(look.hard.values())
        for suspect, question in look.hard.items():
            look.keep(suspect, self._judge.recall(question))
        sessions = {*besides, *self._judge.running}
        groups = look.sure, look.unsure, look.hopeless
        return {name: Hits(*(_living(name, group, sessions) for group in groups)) for name in patterns}

    async def _pass(self, patterns: Mapping[str, str]) -> Look:
        look, rested = Look(self._judge.recall), 0.0
        shapes = [(name, expression(pattern)) for name, pattern in patterns.items()]
        for count, (pid, raw) in enumerate(self._lines.all(), 1):
            for name, shape in shapes:
                if shape.misses(raw):
                    continue
                look.weigh(name, pid, raw, shape)
                if look.spent - rested > BREATH:
                    rested = look.spent
                    await asyncio.sleep(0)
            if count % _SLICE == 0:
                await asyncio.sleep(0)
        return look

    async def still_matches(self, found: ProcessId, pattern: str) -> bool:
        """Whether a live process may still be what the pattern means; while it is executed, it has no line."""
        line, shape = text(self._lines.of(found.pid)), expression(pattern)
        if not line or shape.is_light(line):
            return not line or shape.search(line)
        await self._judge.ask([question := Question(shape.text, line)])
        answer = self._judge.recall(question)
        return answer is None or answer.found is not False

    def close(self) -> None:
        """Let go of all files and of the judge."""
        self._judge.close()
        self._lines.close()


def _living(name: str, suspects: Iterable[Suspect], sessions: Collection[int]) -> tuple[ProcessId, ...]:
    """Those of this name that live and are in none of the sessions, oldest first."""
    seen = [entry(pid) for whose, pid in suspects if whose == name]
    living = [one.found for one in seen if one and one.alive and one.session not in sessions]
    return tuple(sorted(living, key=lambda one: one.started))


async def marked(marker: str, variable: str = MARKER, leaders: bool = False) -> tuple[ProcessId, ...]:
    """The live processes that carry this marker (by default a `PULSE_EFFECT`), oldest first.

    leaders: only those that lead a session, as what Pulse starts does and what that starts does not.
    """
    carriers = []
    for count, pid in enumerate(list(pids()), 1):
        seen = entry(pid) if pid != os.getpid() and carries(pid, marker, variable) else None
        if seen and seen.alive and (seen.session == pid or not leaders):
            carriers.append(seen.found)
        if count % _SLICE == 0:
            await asyncio.sleep(0)
    return tuple(sorted(carriers, key=lambda one: one.started))
