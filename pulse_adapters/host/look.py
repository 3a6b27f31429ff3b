"""One pass over all command lines: what is searched at once, what is known, and what has to be asked."""

import os
import time
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from pulse_adapters.host.command_lines import text, words
from pulse_adapters.host.examination import Question
from pulse_adapters.host.expression import Expression
from pulse_adapters.host.judge import QUEUE, Answer
from pulse_adapters.host.proc import content, entry

ALLOWANCE = 0.02
"""Seconds of searching in the event loop that one look may take; what comes later is left to the judge's child."""


OWN = frozenset({"upulse_cli", "pulse_adapters"})
"""Packages whose modules are programs of Pulse."""


class Suspect(NamedTuple):
    """A process that may be what the pattern of this name means."""

    name: str
    pid: int


class Look:
    """One pass: who matches surely, of whom it cannot be told, or never, and what is to be asked of whom."""

    def __init__(self, recall: Callable[[Question], Answer | None]) -> None:
        self.sure: list[Suspect] = []
        self.unsure: list[Suspect] = []
        self.hopeless: list[Suspect] = []
        self.hard: dict[Suspect, Question] = {}
        self.spent = 0.0
        self._recall = recall

    def weigh(self, name: str, pid: str, raw: bytes, shape: Expression) -> None:
        """Search where that is quick, else remember, else leave it to be asked."""
        began, line = time.perf_counter(), text(raw)
        light = self.spent < ALLOWANCE and shape.is_light(line)
        found = light and shape.search(line)
        self.spent += time.perf_counter() - began
        if (found or not light) and not _is_ours(int(pid), raw):
            self._note(Suspect(name, int(pid)), None if found else Question(shape.text, line))

    def _note(self, suspect: Suspect, question: Question | None) -> None:
        if question is None:
            self.sure.append(suspect)
        elif (known := self._recall(question)) or len(self.hard) >= QUEUE:
            self.keep(suspect, known)
        else:
            self.hard[suspect] = question

    def keep(self, suspect: Suspect, answer: Answer | None) -> None:
        """Keep what came out, or that nothing has come out yet."""
        if answer is None or answer.found is None:
            self.unsure.append(suspect)
        if answer and answer.found:
            self.sure.append(suspect)
        if answer and answer.found is None:
            self.hopeless.append(suspect)


def _is_ours(pid: int, raw: bytes) -> bool:
    """Whether it is Pulse, or runs in a session that a helper of Pulse leads, as `journalctl` for its reader of logs."""
    if pid == os.getpid() or is_pulse(words(raw)):
        return True
    seen = entry(pid)
    leader = content(f"/proc/{seen.session}/cmdline") if seen and seen.session != pid else None
    return leader is not None and is_pulse(words(leader))


def is_pulse(argv: list[str]) -> bool:
    """Whether this is Pulse's daemon, command line or helper: it names what it guards without being it."""
    names = [os.path.basename(word) for word in argv[:2]]
    module = next((after for word, after in pairwise(argv) if word == "-m"), "")
    return "upulse" in names or module.split(".")[0] in OWN
