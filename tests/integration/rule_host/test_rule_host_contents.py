"""What an engine may consist of besides rules, and what is said of one that can't be loaded."""

import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_core.composition import FOLD
from pulse_core.model.event import Event
from pulse_core.model.kinds import ErrorReported, Paused
from pulse_core.ports.engine import CannotLoad, EngineFault, UserProjectionState
from pulse_core.settings.settings import Settings
from tests.events import event
from tests.integration.rule_host.rule_host_engines import (
    HASTY,
    SETTINGS,
    at,
    folded,
    grown,
    history_of,
    host_supervisor,
    rule,
    written,
)
from tests.long_form import sampled

SHOWS = "async def shows(prev, curr, inner):\n    return Verdict(notes=(repr(prev.own), repr(curr.own)))\n"
COUNTS = """
from pulse_core import Projection
from rules.own import shows

def count(counts, event):
    counts[event.subject] = counts.get(event.subject, 0) + 1
    return counts

RULES = [shows]
PROJECTIONS = {
    "counts": Projection(start={}, step=count, kinds=frozenset({"error"})),
    "last": Projection(start=(0, None), step=lambda last, event: (event.seq, event.kind)),
}
"""


def error(seq: int, subject: str = "x") -> Event:
    return event(seq, ErrorReported(message="no"), subject)


EVENTS = [error(1), error(2, "y"), event(3, Paused()), error(4)]


async def test_an_own_projection_is_built_from_history_and_goes_on(tmp_path: Path) -> None:
    revision = written(tmp_path, SHOWS, COUNTS)
    async with host_supervisor(revision, at(1, grown(EVENTS[:3])), EVENTS) as host:
        host.feed(EVENTS[3:])
        fold_result = await folded(host, 2, state=grown(EVENTS))
        kept = await host.keep()
    assert fold_result.verdict.notes == (
        "{'counts': {'x': 1, 'y': 1}, 'last': [3, 'paused']}",
        "{'counts': {'x': 2, 'y': 1}, 'last': [4, 'error']}",
    )
    assert {name: (one.seq, one.state) for name, one in kept.items()} == {
        "counts": (4, '{"x":2,"y":1}'),
        "last": (4, '[4,"error"]'),
    }
    assert {name: one.version for name, one in kept.items()} == host.loaded.projections


async def test_a_kept_projection_goes_on_from_there_and_one_of_another_version_does_not(
    tmp_path: Path,
) -> None:
    revision = written(tmp_path, SHOWS, COUNTS)
    async with host_supervisor(revision) as host:
        version = host.loaded.projections["counts"]
    kept = {
        "counts": UserProjectionState(version, 2, '{"kept":5}'),
        "last": UserProjectionState("other", 2, "[99, 1]"),
    }
    async with host_supervisor(revision, at(1, grown(EVENTS)), EVENTS, kept) as host:
        fold_result = await folded(host, 2, state=grown(EVENTS))
    assert fold_result.verdict.notes[1] == "{'counts': {'kept': 5, 'x': 1}, 'last': [4, 'error']}"


async def test_its_version_changes_with_its_code_but_not_with_a_comment(tmp_path: Path) -> None:
    versions = []
    changes = [
        COUNTS,
        COUNTS.replace("def count", "# a word more\ndef count"),
        COUNTS.replace("+ 1", "+ 2"),
        COUNTS.replace('"error"', '"paused"'),
        COUNTS.replace("step=count,", "step=count, version=2,"),
    ]
    for number, text in enumerate(changes):
        async with host_supervisor(written(tmp_path / str(number), SHOWS, text)) as host:
            versions.append(host.loaded.projections["counts"])
    assert versions[0] == versions[1]
    assert len(set(versions)) == 4


async def test_what_is_provisional_is_not_kept(tmp_path: Path) -> None:
    async with host_supervisor(written(tmp_path, SHOWS, COUNTS)) as host:
        host.feed([error(1)])
        await folded(host, 2, state=replace(FOLD.start, provisional=1))
        assert await host.keep() == {}
        await folded(host, 3, state=grown([error(1)]))
        assert {name: one.seq for name, one in (await host.keep()).items()} == {"counts": 1, "last": 1}


BAD_STEPS = {
    "raise ValueError('no')": ("ValueError: no, at event id-1 (error)", True),
    "return object()": ("Unable to serialize", False),
    "return 'x' * 300_000": ("its value takes 300,002 bytes; at most 262,144 are kept", False),
    "raise SystemExit": ("SystemExit; it stands still from here on", False),
}


@pytest.mark.parametrize("body", sampled(BAD_STEPS, 2))
async def test_a_bad_step_is_named_and_the_rules_go_on(body: str, tmp_path: Path) -> None:
    await bad_step(body, *BAD_STEPS[body], tmp_path)


async def bad_step(body: str, words: str, goes_on: bool, place: Path, settings: Settings = SETTINGS) -> None:
    """What becomes of a projection whose step does this at one event."""
    text = f"""
from pulse_core import Projection
from rules.own import shows

def step(value, event):
    if event.subject == "bad":
        {body}
    return value + 1

RULES = [shows]
PROJECTIONS = {{"mine": Projection(start=0, step=step)}}
"""
    async with host_supervisor(written(place, SHOWS, text)) as host:
        events = [error(1, "bad"), error(2), error(3)]
        host.feed(events[:1])
        fold_result = await folded(host, 2, state=grown(events[:1]), settings=settings)
        assert [fault.whose for fault in fold_result.faults] == ["projection:mine"]
        assert words in fold_result.faults[0].message
        assert "(engine.py:" in fold_result.faults[0].message
        host.feed(events[1:])
        fold_result = await folded(host, 3, state=grown(events))
        assert fold_result.faults == ()
        assert fold_result.verdict.notes[1] == ("{'mine': 2}" if goes_on else "{'mine': 0}")
        assert bool(await host.keep()) == goes_on


@pytest.mark.wall_clock
@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        """try:
            while True: str(7)
        except BaseException:
            import signal; signal.setitimer(signal.ITIMER_REAL, 0)
            raise ValueError from None""",
    ],
    ids=["to its end", "in a library that makes another exception of its stop"],
)
async def test_a_step_that_takes_too_long_is_named_and_the_rules_go_on(tmp_path: Path, body: str) -> None:
    await bad_step(body, "took too long; it stands still from here on", False, tmp_path, HASTY)


@pytest.mark.wall_clock
async def test_a_step_that_hangs_in_c_is_named_too(tmp_path: Path) -> None:
    text = """
from pulse_core import Projection
RULES = []

def step(value, event):
    return sum(range(10**13))

PROJECTIONS = {"mine": Projection(start=0, step=step)}
"""
    async with host_supervisor(written(tmp_path, "", text)) as host:
        host.feed([error(1)])
        fold_result = await folded(host, 2, state=grown([error(1)]), settings=HASTY)
        assert fold_result.faults == (
            EngineFault("projection:mine", "took longer than 1,000 ms, and its host was ended (engine.py:6)"),
        )


async def test_history_that_cannot_be_folded_is_a_reason_not_to_load(tmp_path: Path) -> None:
    text = (
        "from pulse_core import Projection\nRULES = []\n"
        "PROJECTIONS = {'mine': Projection(start=0, step=lambda value, event: sum(range(10**13)))}\n"
    )
    start = ChildHosts(load=3.0).start(
        written(tmp_path, "", text), at(1, grown([error(1)])), history_of([error(1)]), {}
    )
    with pytest.raises(CannotLoad, match="projection:mine: took longer than 3,000 ms"):
        await start


async def test_a_history_that_is_folded_for_ever_batch_by_batch_is_one_too(tmp_path: Path) -> None:
    text = (
        "from pulse_core import Projection\nRULES = []\n"
        "PROJECTIONS = {'mine': Projection(start=0, step=lambda value, event: value)}\n"
    )

    async def endless(after: int) -> AsyncIterator[Sequence[Event]]:
        while True:
            yield [error(1)]

    hosts = ChildHosts(load=60.0, whole=2.0)
    with pytest.raises(CannotLoad, match="not loaded, and the log folded, within 2 s"):
        await hosts.start(written(tmp_path, "", text), at(1, grown([error(1)])), endless, {})


async def test_what_rules_ordinarily_import_is_there(tmp_path: Path) -> None:
    before = """
    import collections, dataclasses, datetime, decimal, email, fractions, functools, hashlib, heapq, importlib.metadata
    import itertools, json, math, operator, random, re, statistics, string, textwrap, uuid, zoneinfo
    import pydantic
    from pulse_core import Executor, Policy, PulseError, Reading, Rule, Sample, Watcher, Window
    from pulse_core.testing import given
    """
    body = """
    there = datetime.datetime.fromtimestamp(curr.now.at / 10**6, zoneinfo.ZoneInfo("Europe/Berlin"))
    return Verdict(notes=(there.isoformat(), importlib.metadata.version("pydantic")))
    """
    async with host_supervisor(written(tmp_path, rule(body, before=before))) as host:
        fold_result = await folded(host, 2)
    assert fold_result.faults == ()
    assert fold_result.verdict.notes == ("2001-09-09T03:46:42+02:00", metadata.version("pydantic"))


async def test_hands_are_named(tmp_path: Path) -> None:
    text = """
class Looks:
    name = "looks"

class Does:
    action = "do-it"

RULES = []
WATCHERS = [Looks()]
EXECUTORS = [Does()]
"""
    async with host_supervisor(written(tmp_path, "", text)) as host:
        assert (host.loaded.watchers, host.loaded.executors) == (("looks",), ("do-it",))


FAULTY = {
    "x = 1": "RULES is no list; write RULES = [...] (engine.py)",
    "RULES = 7": "RULES is no list",
    "RULES = [7]": "'7' is no rule",
    "import rules.own as own\nRULES = [own.shows, own.shows]": "two rules are named 'shows'; rename one (engine.py)",
    "RULES = []\nPROJECTIONS = [1]": "PROJECTIONS is no dictionary by name",
    "RULES = []\nPROJECTIONS = {'a': 1}": "PROJECTIONS['a'] is no Projection",
    "from rules.own import nothing": "cannot import name 'nothing'",
    "\n\nRULES = [undefined]": "NameError: name 'undefined' is not defined (engine.py:3)",
    "from pulse_core import Projection\nRULES = []\nPROJECTIONS = {'a': Projection(object(), max)}": "the start of ",
}


@pytest.mark.parametrize("text", sampled(FAULTY, 3))
async def test_what_is_wrong_with_an_engine_is_said(text: str, tmp_path: Path) -> None:
    with pytest.raises(CannotLoad) as caught:
        await ChildHosts().start(written(tmp_path, SHOWS, text), at(1), history_of(()), {})
    assert FAULTY[text] in str(caught.value)


async def test_a_revision_without_an_engine_is_not_loaded(tmp_path: Path) -> None:
    revision = written(tmp_path, SHOWS)
    (tmp_path / "engine.py").unlink()
    with pytest.raises(CannotLoad, match=r"there is no engine\.py in this revision"):
        await ChildHosts().start(revision, at(1), history_of(()), {})


async def test_a_python_that_cannot_start_is_a_reason_not_to_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(CannotLoad, match="its host ended with status 1"):
        await ChildHosts().start(written(tmp_path, SHOWS), at(1), history_of(()), {})
    monkeypatch.setattr(sys, "executable", "/nonexistent")
    with pytest.raises(CannotLoad, match="no rule host can be started"):
        await ChildHosts().start(written(tmp_path, SHOWS), at(1), history_of(()), {})


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of rules where Python finds it."""
    package = tmp_path / "site-packages" / "calm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "nights.py").write_text(
        "from pulse_core import Verdict\n\n\n"
        "async def calm(prev, curr, inner):\n"
        "    verdict = await inner(prev, curr)\n"
        "    if curr.tick == 3:\n"
        "        raise ValueError('three')\n"
        "    return verdict.noting('calm')\n"
    )
    (package / "broken.py").write_text("1 / 0\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(package.parent)])
    return package


async def test_plugins_rules_are_outermost_and_a_broken_plugin_is_left_out(
    tmp_path: Path, plugin: Path
) -> None:
    hosts = ChildHosts(plugins={"calm": "calm.nights:calm", "broken": "calm.broken:x", "gone": "no_such:x"})
    source = rule("return Verdict(notes=('own',))", "own_rule")
    async with host_supervisor(written(tmp_path / "engine", source), hosts=hosts) as host:
        assert host.loaded.rules == ("calm", "own_rule")
        assert host.loaded.plugins == ("calm",)
        fold_result = await folded(host, 2)
        assert fold_result.verdict.notes == ("own", "calm")
        assert [fault.whose for fault in fold_result.faults] == ["plugin:broken", "plugin:gone"]
        assert "ZeroDivisionError: division by zero (calm/broken.py:1)" in fold_result.faults[0].message
        assert "No module named 'no_such'" in fold_result.faults[1].message
        fold_result = await folded(host, 3)
        assert fold_result.faults == (EngineFault("rule:calm", "ValueError: three (calm/nights.py:7)"),)


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("import os\nos._exit(3)\n", "ended with status 3"),
        ("import ctypes\nctypes.string_at(0)\n", "SIGSEGV"),
    ],
)
async def test_the_plugin_that_ends_its_host_when_it_is_imported_is_named(
    tmp_path: Path, plugin: Path, code: str, ends: str
) -> None:
    (plugin / "broken.py").write_text(code)
    hosts = ChildHosts(plugins={"calm": "calm.nights:calm", "ending": "calm.broken:x", "gone": "no_such:x"})
    revision = written(tmp_path / "engine", rule("return await inner(prev, curr)", "own"))
    with pytest.raises(CannotLoad, match=f"{ends}.*while it imported the plugin ending; see: upulse plugins"):
        await hosts.start(revision, at(1), history_of(()), {})


BRINGING = """
from pulse_core import Plugin, Projection

async def counts(prev, curr, inner):
    return (await inner(prev, curr)).noting(f"counted {curr.own['seen']}")

async def taken(prev, curr, inner):
    return await inner(prev, curr)

def step(state, event):
    return state + 1

brings = Plugin("brings", rules=(counts,), projections={"seen": Projection(start=0, step=step)})
clashes = Plugin("clashes", rules=(taken,))
"""


async def test_a_plugin_brings_projections_and_one_that_takes_a_name_of_the_engine_is_left_out(
    tmp_path: Path, plugin: Path
) -> None:
    (plugin / "bringing.py").write_text(BRINGING)
    hosts = ChildHosts(plugins={"brings": "calm.bringing:brings", "clashes": "calm.bringing:clashes"})
    own = rule("return await inner(prev, curr)", "taken")
    async with host_supervisor(written(tmp_path / "engine", own), hosts=hosts) as host:
        assert host.loaded.plugins == ("brings",)
        assert host.loaded.rules == ("counts", "taken")
        fold_result = await folded(host, 2)
        assert fold_result.verdict.notes == ("counted 0",)
        assert [fault.whose for fault in fold_result.faults] == ["plugin:clashes"]
