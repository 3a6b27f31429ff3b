"""The program of the child that searches where a search may take long. It lives for milliseconds: little is imported.

It reads marshalled pairs (expression, line) from its standard input, which is a socket, and answers each with one
byte: whether `re.search` finds something, or that it took too much time. It ends when its input does.
"""

import io
import marshal
import os
import re
import resource
import signal
import sys

FOUND, MISSED, TOO_LONG = b"1", b"0", b"?"
_ALL_TOGETHER_S = 10


class TooLong(Exception):
    """Raised by the timer, inside of `re`, which looks for signals every 4,096 steps."""


def examine(expression: str, line: str, seconds: float) -> bytes:
    """One search, of so many seconds of this process's own CPU time: a busy machine makes no search too long."""
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        found = re.search(expression, line) is not None
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except TooLong:
        return TOO_LONG
    return FOUND if found else MISSED


def answer(questions: io.BufferedReader, answers: int, seconds: float) -> None:
    """Answer until nobody asks any more."""
    while True:
        try:
            expression, line = marshal.load(questions)
        except EOFError:
            return
        os.write(answers, examine(expression, line, seconds))


def too_long(*_: object) -> None:
    """What the timer calls."""
    raise TooLong


if __name__ == "__main__":
    # Should nobody be left to kill it, and a search not be interrupted, the kernel ends it.
    resource.setrlimit(resource.RLIMIT_CPU, (_ALL_TOGETHER_S, _ALL_TOGETHER_S))
    signal.signal(signal.SIGVTALRM, too_long)
    with open(0, "rb") as asked:
        answer(asked, 1, float(sys.argv[1]))
