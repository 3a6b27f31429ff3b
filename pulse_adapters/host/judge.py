"""Searches that may take long, done by a child that can be killed: the event loop never waits for `re`."""

import asyncio
import logging
from collections.abc import Collection
from itertools import islice
from typing import NamedTuple

from pulse_adapters.host.children import Children
from pulse_adapters.host.examination import Examination, Question
from pulse_adapters.host.examiner import FOUND, TOO_LONG

PATIENCE = 0.1
"""Seconds that a look waits for answers. The work goes on afterwards, and the next look finds them."""
QUEUE = 256
"""Questions waiting at most, of 4,096 characters at most; who has more gets no answer to the rest, and asks again."""
AGAIN = 60.0
"""Seconds until a search that took too long is tried again."""

_KNOWN = 2048
LOG = logging.getLogger("pulse.host")


class Answer(NamedTuple):
    """What was found out, None if it took too long, and when (loop time)."""

    found: bool | None
    at: float


class Judge:
    """Remembers answers, and has the rest found out by a child, which lives only while there is something to ask.

    It knows a question by its hash, whose 64 bits are keyed by chance: nobody can make his pass for another.
    """

    def __init__(self) -> None:
        self._known: dict[int, Answer] = {}
        self._open: dict[Question, asyncio.Future[bool | None]] = {}
        self._work: asyncio.Task[None] | None = None
        self._children = Children()
        self._running: set[int] = set()

    @property
    def running(self) -> frozenset[int]:
        """The pids, which are the session ids too, of its children."""
        return frozenset(self._running)

    def recall(self, question: Question) -> Answer | None:
        """What is known of it; None if that is nothing, or so old that it is to be asked again."""
        known = self._known.get(hash(question))
        if known and known.found is None and asyncio.get_running_loop().time() - known.at >= AGAIN:
            return None
        return known

    async def ask(self, questions: Collection[Question]) -> None:
        """Have these answered as far as that is possible soon; `recall` tells what came of it."""
        loop = asyncio.get_running_loop()
        new = [one for one in dict.fromkeys(questions) if one not in self._open and not self.recall(one)]
        new.sort(key=lambda one: len(one.line))  # what is long may have been made to be
        for question in islice(new, max(0, QUEUE - len(self._open))):
            self._open[question] = loop.create_future()
        if awaited := {self._open[question] for question in questions if question in self._open}:
            if self._work is None or self._work.done():
                self._work = loop.create_task(self._answer_all(), name="judge of command lines")
            await asyncio.wait(awaited, timeout=PATIENCE)

    async def _answer_all(self) -> None:
        try:
            while self._open:
                with Examination(self._children, self._running) as child:
                    await self._answer_with(child)
        except OSError as error:
            LOG.error("cannot start a child to search command lines: %s", error.strerror)
            self._give_up()

    async def _answer_with(self, child: Examination) -> None:
        """Answer all that is open, or as much as the child lives to answer."""
        said = FOUND
        while self._open and said:
            question = next(iter(self._open))
            said = await child.ask(question)
            self._settle(question, said == FOUND if said and said != TOO_LONG else None)

    def _settle(self, question: Question, found: bool | None) -> None:
        self._known.pop(hash(question), None)
        self._known[hash(question)] = Answer(found, asyncio.get_running_loop().time())
        if len(self._known) > _KNOWN:
            del self._known[next(iter(self._known))]
        self._open.pop(question).set_result(found)

    def _give_up(self) -> None:
        """Leave everybody without an answer, to ask again."""
        for future in self._open.values():
            future.set_result(None)
        self._open.clear()

    def close(self) -> None:
        """End the child and leave what is open unanswered."""
        if self._work:
            self._work.cancel()
        self._give_up()
        for pid in self._running:
            self._children.kill(pid)
        self._children.close()
