"""Who waits for long on a terminal is told how far it is."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

import pytest

from pulse_core.model.event import Event
from upulse_cli.output import fold_progress


def batch(seq: int) -> list[Event]:
    return [Event(seq, "id", 1, "boot", 1, "paused", "", "ada", "here", None, "{}")]


BATCHES = [batch(seq) for seq in (1_000, 2_000)]


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal that errors are written to; what it shows is read from the descriptor."""
    shown, ours = os.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(ours, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        yield shown
    os.close(shown)


def test_what_takes_long_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as shown:
        assert list(fold_progress(BATCHES, 2_000, quiet=0.0)) == BATCHES
        said = b""
        while "folding the log … row 2,000 of 2,000".encode() not in said:  # the test's own timeout ends it
            said += os.read(shown, 10_000)


def test_what_is_quick_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as shown:
        assert list(fold_progress(BATCHES, 2_000)) == BATCHES
        os.set_blocking(shown, False)
        with pytest.raises(BlockingIOError):
            os.read(shown, 1)


def test_a_pipe_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    assert list(fold_progress(BATCHES, 2_000, quiet=0.0)) == BATCHES
    assert pipe.getvalue() == ""
