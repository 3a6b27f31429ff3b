"""Engines on disk, hosts that run them, and ticks for those."""

import os
import textwrap
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pulse_adapters.rule_host.host import ChildRuleHost
from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_core.composition import FOLD
from pulse_core.model.event import Event
from pulse_core.model.moment import Moment
from pulse_core.ports.engine import FoldResult, History, Revision, RuleHosts, UserProjectionState
from pulse_core.projections.state import Snapshot, State
from pulse_core.settings.settings import Settings

SETTINGS = Settings.model_validate({"engine": {"deadline": "20s"}})
"""Hardly any test is about the deadline, and the machine may be busy."""
DEADLINE = 1.0
HASTY = Settings.model_validate({"engine": {"deadline": "1s"}})
"""For rules that use up their deadline."""
HEAD = "from pulse_core import Effect, Event, Inner, Projection, Snapshot, Verdict\n"
HERE = "# here"


def written(root: Path, rules: str, engine: str = "", **files: str) -> Revision:
    """An engine with these rules in `rules/own.py`, all of its functions listed in their order unless `engine` says so."""
    names = [
        line.split()[2].partition("(")[0] for line in rules.splitlines() if line.startswith("async def ")
    ]
    listed = engine or f"from rules.own import {', '.join(names)}\nRULES = [{', '.join(names)}]\n"
    (root / "rules").mkdir(parents=True, exist_ok=True)
    (root / "rules" / "own.py").write_text(HEAD + rules)
    (root / "engine.py").write_text(listed)
    for name, text in files.items():
        (root / f"{name}.py").write_text(text)
    return Revision("0" * 40, str(root))


def rule(body: str, name: str = "bad", before: str = "") -> str:
    """The source of a rule with this body."""
    head = textwrap.dedent(before).strip()
    return f"{head}\n\nasync def {name}(prev, curr, inner):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def place_of(source: str, mark: str = HERE) -> str:
    """Where the marked line of `rules/own.py` is."""
    lines = (HEAD + source).splitlines()
    return f"rules/own.py:{next(number for number, line in enumerate(lines, 1) if mark in line)}"


def at(tick: int, state: State | None = None, **more: Any) -> Snapshot:
    """A snapshot, one second after the one before."""
    now = Moment(10**15 + tick * 10**6, "boot", tick * 10**6)
    return Snapshot(tick, now, more.pop("settings", SETTINGS), state=state or FOLD.start, **more)


def history_of(events: Sequence[Event]) -> History:
    """These events as a log would tell them."""

    async def history(after: int) -> AsyncIterator[Sequence[Event]]:
        rows = [event for event in events if event.seq > after]
        for first in range(0, len(rows), 50):
            yield rows[first : first + 50]

    return history


def grown(events: Sequence[Event]) -> State:
    """What the log says after these events."""
    return FOLD(FOLD.start, events)


@asynccontextmanager
async def host_supervisor(
    revision: Revision,
    prev: Snapshot | None = None,
    events: Sequence[Event] = (),
    kept: Mapping[str, UserProjectionState] | None = None,
    hosts: ChildHosts | None = None,
) -> AsyncIterator[ChildRuleHost]:
    """A host that has loaded the revision."""
    port: RuleHosts = hosts or ChildHosts(load=60.0)
    host = await port.start(revision, prev or at(1), history_of(events), kept or {})
    assert isinstance(host, ChildRuleHost)
    try:
        yield host
    finally:
        await host.close()


async def folded(host: ChildRuleHost, tick: int, **more: Any) -> FoldResult:
    """What comes of the next tick."""
    return await host.fold(at(tick - 1), at(tick, **more))


def is_running(pid: int) -> bool:
    """Whether there is such a process."""
    return os.path.exists(f"/proc/{pid}")
