"""A diagnostic bundle for whoever has to find out what went wrong: the state, the last events, ticks and an hour of vitals.

Not in it: anybody's environment, secrets of settings, and the contents of other files.
"""

import json
import platform
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pulse_core import __version__
from pulse_core.app.context import HomeContext
from pulse_core.app.status import home_status

EVENTS, TICKS = 2_000, 500
HOUR_US = 3_600_000_000
BundlePart = tuple[str, Callable[[], str]]
"""A file of the bundle, and what makes its text."""


def home_parts(home: HomeContext, why: str) -> Iterator[BundlePart]:
    """What the home tells of itself."""
    yield "about.json", lambda: json.dumps(about(home, why), indent=1)
    yield "status.json", lambda: json.dumps(home_status(home), indent=1)
    yield "events.jsonl", lambda: "\n".join(events(home))
    yield "samples.jsonl", lambda: "\n".join(samples(home))
    yield "ticks.jsonl", lambda: "\n".join(ticks(home))


def about(home: HomeContext, why: str) -> Mapping[str, Any]:
    """What wrote this, where, when and what for."""
    return {
        "why": why,
        "home": str(home.layout.path),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "version": __version__,
        "python": sys.version,
        "sqlite": sqlite3.sqlite_version,
        "kernel": platform.release(),
    }


def events(home: HomeContext) -> Iterator[str]:
    """The last events, oldest first."""
    with home.events() as log:
        newest = list(log.events(limit=EVENTS, newest_first=True))
        yield from (json.dumps(row.spelled()) for row in reversed(newest))


def samples(home: HomeContext) -> Iterator[str]:
    """The last hour of every sense."""
    now = time.time_ns() // 1000
    with home.vitals() as vitals:
        yield from (json.dumps(sample.spelled()) for sample in vitals.between(now - HOUR_US, now))


def ticks(home: HomeContext) -> Iterator[str]:
    """The last ticks, oldest first."""
    with home.vitals() as vitals:
        yield from (json.dumps(tick.spelled()) for tick in reversed(vitals.ticks(TICKS)))
