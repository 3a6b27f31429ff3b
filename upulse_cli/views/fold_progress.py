"""A sign of life for a person who waits: what takes longer than a second says how far it is."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack

from pulse_core.model.event import Event

QUIET = 1.0
"""Seconds that pass without a word."""


def fold_progress(
    batches: Iterable[Sequence[Event]], last: int, quiet: float = QUIET
) -> Iterator[Sequence[Event]]:
    """The same batches of rows; on a terminal, a line that goes again tells how far they are of the last row."""
    began = time.monotonic()
    with ExitStack() as drawing:
        line = None
        for batch in batches:
            if line is None and time.monotonic() - began >= quiet and sys.stderr.isatty():
                from rich.console import Console  # costs 40 ms: only where something is drawn

                line = drawing.enter_context(Console(stderr=True).status("folding the log …"))
            if line:
                line.update(f"folding the log … row {batch[-1].seq:,} of {last:,}")
            yield batch
