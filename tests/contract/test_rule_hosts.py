"""What every rule host promises, and who starts one: the same engine, in a child and in memory."""

import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.memory.engine import MemoryHosts, MemoryRevisions, MemoryRuleHost
from pulse_adapters.rule_host.host import KEEPING, MOST_KEPT, ChildRuleHost
from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_core.composition import FOLD
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect, EffectCancelled
from pulse_core.model.moment import Moment
from pulse_core.model.payload import encode
from pulse_core.ports.engine import (
    CannotLoad,
    FoldResult,
    RecordedInput,
    Revision,
    RuleHost,
    RuleHosts,
    UserProjectionState,
)
from pulse_core.projections.state import Snapshot
from pulse_core.settings.settings import Settings
from tests.long_form import sampled

SETTINGS = Settings.model_validate({"engine": {"deadline": "20s"}})
HEAD = "from pulse_core import Effect, Projection, Verdict\n"
WISHES = """
async def wishes(prev, curr, inner):
    return (await inner(prev, curr)).plus(Effect(action="note", key=f"tick-{curr.tick}"))
"""
COUNTS = """
def step(value, event):
    if event.subject == "bad":
        raise ValueError("no")
    return {"n": value["n"] + 1} if event.subject != "odd" else object()


async def shows(prev, curr, inner):
    own, known = curr.own.get("seen", {}).get("n"), len(curr.effects.open)
    return (await inner(prev, curr)).plus(Effect(action="note", key="shown", params={"own": own, "open": known}))
"""
SEEN = 'PROJECTIONS = {"seen": Projection({"n": 0}, step, version=%d)}\n'
RAISES = """
async def raises(prev, curr, inner):
    await inner(prev, curr)
    %s
"""


ONLY_CHILD = pytest.mark.parametrize("house", ["child"], indirect=True)
"""The twin in memory has no projections of authors."""


@dataclass
class House:
    """Starts hosts of engines that are written down as rules and projections."""

    hosts: RuleHosts
    root: Path
    memory: MemoryRevisions | None
    begun: list[RuleHost] = field(default_factory=list)

    async def start(
        self,
        source: str,
        events: Sequence[Event] = (),
        kept: Mapping[str, UserProjectionState] | None = None,
        prev: Snapshot | None = None,
    ) -> RuleHost:
        """A host of this engine. events: what is in the log already, where the host stands."""
        revision = self.written(source)
        prev = prev or at(1, events)

        async def history(after: int) -> AsyncIterator[Sequence[Event]]:
            yield [event for event in events if event.seq > after]

        host = await self.hosts.start(revision, prev, history, kept or {})
        self.begun.append(host)
        return host

    def written(self, source: str) -> Revision:
        """The revision of an engine; its rules are its coroutines, in their order."""
        names = [
            line.split()[2].partition("(")[0] for line in source.splitlines() if line.startswith("async")
        ]
        text = f"{HEAD}{source}\nRULES = [{', '.join(names)}]\n"
        if self.memory is None:
            (self.root / "engine.py").write_text(text)
            return Revision("0" * 40, str(self.root))
        found: dict[str, Any] = {}
        try:
            exec(text, found)
        except Exception:  # noqa: BLE001 - as an engine may
            self.memory.engines["second"] = None
        else:
            self.memory.engines["second"] = found["RULES"]
        return Revision("second", "/nowhere")


@pytest.fixture(params=["memory", "child"])
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    if request.param == "memory":
        revisions = MemoryRevisions({}, "second")
        house = House(MemoryHosts(revisions), tmp_path, revisions)
    else:
        house = House(ChildHosts(load=60.0), tmp_path, None)
    yield house
    for host in house.begun:
        await host.close()


def kill(host: RuleHost) -> None:
    """End it, as a stranger would."""
    if isinstance(host, MemoryRuleHost):
        host.alive = False
    else:
        assert isinstance(host, ChildRuleHost)
        os.kill(host.pid, signal.SIGKILL)


def at(tick: int, events: Sequence[Event] = (), provisional: int = 0) -> Snapshot:
    """A snapshot that knows of these events; the last ones of them are only provisional."""
    now = Moment(10**15 + tick * 10**6, "boot", tick * 10**6)
    projected = FOLD(FOLD.start, events)
    projected = replace(projected, seq=len(events) - provisional, provisional=provisional)
    return Snapshot(tick, now, SETTINGS, state=projected)


async def folded(host: RuleHost, tick: int, events: Sequence[Event] = (), provisional: int = 0) -> FoldResult:
    """What comes of a tick."""
    return await host.fold(at(tick - 1), at(tick, events, provisional))


def wished(count: int, subject: str = "") -> list[Event]:
    """A log of so many effects, the last of them about something else if that is named."""
    events = []
    for seq in range(1, count + 1):
        key = subject if subject and seq == count else f"key-{seq}"
        moment, data = Moment(10**15 + seq, "boot", seq), encode(Effect(action="note", key=key))
        events.append(Event(seq, f"id-{seq}", *moment, "effect", key, "pulse", "host", None, data))
    return events


def cancelled(seq: int, id_: str) -> Event:
    """The end of an effect that was not begun."""
    payload = EffectCancelled(why="enough")
    moment = Moment(10**15 + seq, "boot", seq)
    return Event(seq, f"id-{seq}", *moment, payload.kind, id_, "pulse", "host", None, encode(payload))


def shown(fold_result: FoldResult) -> tuple[Any, Any]:
    """The own value and the number of open effects that a rule saw."""
    assert not fold_result.faults
    params = fold_result.verdict.effects[0].params
    return params["own"], params["open"]


async def test_rules_are_loaded_and_folded_in_their_order(house: House) -> None:
    host = await house.start(WISHES + WISHES.replace("wishes", "inside"))
    assert host.loaded.rules == ("wishes", "inside")
    assert host.alive
    fold_result = await folded(host, 2)
    assert [layer.rule for layer in fold_result.layers] == ["inside", "wishes"]
    assert [(one.key, one.rule) for one in fold_result.verdict.effects] == [
        ("tick-2", "inside"),
        ("tick-2", "wishes"),
    ]
    assert not fold_result.faults


async def test_what_cannot_be_loaded_is_said(house: House) -> None:
    with pytest.raises(CannotLoad):
        await house.start("raise ValueError('no')")


@pytest.mark.parametrize(
    "what", sampled(["raise ValueError('no')", "raise SystemExit(3)", "raise KeyboardInterrupt"], 2)
)
async def test_a_rule_that_raises_is_named_and_its_inner_verdict_stands(house: House, what: str) -> None:
    host = await house.start(RAISES % what + WISHES)
    for tick in (2, 3):
        fold_result = await folded(host, tick)
        assert [one.key for one in fold_result.verdict.effects] == [f"tick-{tick}"]
        assert [(layer.rule, layer.outcome) for layer in fold_result.layers] == [
            ("wishes", "added"),
            ("raises", "error"),
        ]
        ((whose, message),) = fold_result.faults
        assert whose == "rule:raises"
        assert what.split()[1].partition("(")[0] in message


async def test_a_rule_that_waits_for_what_never_comes_holds_nothing_up(house: House) -> None:
    waits = "import asyncio\n" + RAISES % "await asyncio.Event().wait()"
    host = await house.start(waits + WISHES)
    fold_result = await folded(host, 2)
    assert [one.key for one in fold_result.verdict.effects] == ["tick-2"]
    assert [fault.whose for fault in fold_result.faults] == ["rule:raises"]


async def test_an_answer_that_is_no_verdict_is_a_fault(house: House) -> None:
    host = await house.start(RAISES % "return 7")
    fold_result = await folded(host, 2)
    assert fold_result.verdict.effects == ()
    assert [fault.whose for fault in fold_result.faults] == ["rule:raises"]


FORGES = """
async def forges(prev, curr, inner):
    wish = Effect(action="note", key="f", survival=True, rule="blast_radius", tick=99)
    verdict = await inner(prev, curr)
    return Verdict((*(one.model_copy(update={"tick": 7}) for one in verdict.effects), wish), verdict.tick_ms)
"""


async def test_each_effect_bears_whose_it_is_and_the_tick_and_none_is_survivals(house: House) -> None:
    host = await house.start(FORGES + WISHES + "RULES = [forges, wishes]\n")
    fold_result = await host.fold(at(1), at(2))
    told = [(one.key, one.rule, one.tick, one.survival) for one in fold_result.verdict.effects]
    assert told == [("tick-2", "wishes", 2, False), ("f", "forges", 2, False)]


async def test_rules_see_the_events_that_a_tick_knows_of_and_no_later_ones(house: House) -> None:
    host = await house.start(COUNTS)
    events = wished(3)
    host.feed(events[:2])
    host.feed(events[2:])
    assert shown(await folded(host, 2, events[:2])) == (None, 2)
    assert shown(await folded(host, 3, events)) == (None, 3)
    host.feed([cancelled(4, "id-1")])
    assert shown(await folded(host, 4, [*events, cancelled(4, "id-1")])) == (None, 2)


@ONLY_CHILD
async def test_a_host_stands_where_it_was_started(house: House) -> None:
    events = wished(5)
    host = await house.start(COUNTS + SEEN % 1, events[:3])
    assert shown(await folded(host, 2, events[:3])) == (3, 3)
    host.feed(events[3:])
    assert shown(await folded(host, 3, events)) == (5, 5)


@ONLY_CHILD
async def test_an_event_that_is_fed_twice_counts_once(house: House) -> None:
    """As when it is read in the log a moment before the log tells of it."""
    events = wished(5)
    host = await house.start(COUNTS + SEEN % 1, events[:2])
    host.feed(events[:3])
    host.feed(events[2:4])
    host.feed(events[3:4])
    assert shown(await folded(host, 2, events[:4])) == (4, 4)
    host.feed(events[2:])
    assert shown(await folded(host, 3, events)) == (5, 5)


async def test_quarantined_rules_are_passed_over_until_they_are_named_no_more(house: House) -> None:
    host = await house.start(WISHES + RAISES % "raise ValueError('no')")
    host.quarantine(["raises"])
    fold_result = await folded(host, 2)
    assert ([layer.rule for layer in fold_result.layers], fold_result.faults) == (["wishes"], ())
    host.quarantine(["wishes", "unknown"])
    fold_result = await folded(host, 3)
    assert [layer.rule for layer in fold_result.layers] == ["raises"]
    host.quarantine([])
    assert len((await folded(host, 4)).layers) == 2


@ONLY_CHILD
async def test_what_is_kept_of_a_projection_is_where_the_next_host_goes_on(house: House) -> None:
    events = wished(4)
    first = await house.start(COUNTS + SEEN % 1, events)
    kept = await first.keep()
    assert kept.keys() == first.loaded.projections.keys() == {"seen"}
    assert (kept["seen"].version, kept["seen"].seq) == (first.loaded.projections["seen"], 4)
    assert json.loads(kept["seen"].state) == {"n": 4}
    ahead = {"seen": kept["seen"]._replace(state='{"n": 70}', seq=3)}
    resumed = await house.start(COUNTS + SEEN % 1, events, ahead)
    assert shown(await folded(resumed, 2, events)) == (71, 4)


@ONLY_CHILD
async def test_of_many_long_projections_only_so_much_is_kept(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulse_adapters.rule_host.host.KEEPING", 1000.0)  # however busy the machine is
    long = "{str(n): Projection('x' * 250_000, lambda value, event: value) for n in range(20)}"
    host = await house.start(f"PROJECTIONS = {long}\n", wished(1))
    kept = await host.keep()
    assert list(kept) == [str(number) for number in range(MOST_KEPT // 250_002)]


@ONLY_CHILD
async def test_a_host_that_gives_its_projections_away_slowly_holds_no_tick_up_for_long(house: House) -> None:
    slow = """
import sys, time
host = sys.modules["__main__"].RuleHostChild
quick = host._kept
host._kept = lambda self, name: (time.sleep(KEEPING / 5), quick(self, name))[1]
PROJECTIONS = {str(n): Projection(n, lambda value, event: value) for n in range(12)}
"""
    host = await house.start(slow.replace("KEEPING", str(KEEPING)), wished(1))
    assert 1 <= len(await host.keep()) <= 6
    assert host.alive


@ONLY_CHILD
@pytest.mark.parametrize("unfit", sampled([{"version": "of another fold"}, {"seq": 9}], 2))
async def test_what_was_kept_and_does_not_fit_is_folded_anew(house: House, unfit: dict[str, Any]) -> None:
    events = wished(4)
    version = (await house.start(COUNTS + SEEN % 1)).loaded.projections["seen"]
    kept = UserProjectionState(version, 2, '{"n": 70}')._replace(**unfit)
    host = await house.start(COUNTS + SEEN % 1, events, {"seen": kept})
    assert shown(await folded(host, 2, events)) == (4, 4)


@ONLY_CHILD
async def test_another_version_of_a_projection_is_another_fold(house: House) -> None:
    versions = {(await house.start(COUNTS + SEEN % n)).loaded.projections["seen"] for n in (1, 2, 1)}
    assert len(versions) == 2


@ONLY_CHILD
async def test_a_projection_that_knows_what_is_only_supposed_is_not_kept(house: House) -> None:
    events = wished(3)
    host = await house.start(COUNTS + SEEN % 1)
    host.feed(events)
    assert shown(await folded(host, 2, events, provisional=1)) == (3, 3)
    assert await host.keep() == {}
    await folded(host, 3, events)
    assert (await host.keep())["seen"].seq == 3


@ONLY_CHILD
async def test_an_event_at_which_a_projection_fails_is_passed_over(house: House) -> None:
    events = wished(3, subject="bad")
    host = await house.start(COUNTS + SEEN % 1)
    host.feed(events)
    fold_result = await folded(host, 2, events)
    assert [fault.whose for fault in fold_result.faults] == ["projection:seen"]
    assert "ValueError: no" in fold_result.faults[0].message
    assert "id-3" in fold_result.faults[0].message
    assert fold_result.verdict.effects[0].params == {"own": 2, "open": 3}
    assert json.loads((await host.keep())["seen"].state) == {"n": 2}


@ONLY_CHILD
async def test_a_value_that_is_no_json_stands_still_and_is_not_kept(house: House) -> None:
    events = wished(3, subject="odd")
    host = await house.start(COUNTS + SEEN % 1, events[:2])
    host.feed(events[2:])
    fold_result = await folded(host, 2, events)
    assert [fault.whose for fault in fold_result.faults] == ["projection:seen"]
    assert fold_result.verdict.effects[0].params["own"] == 2
    assert not (await folded(host, 3, events)).faults
    assert await host.keep() == {}


async def test_a_host_that_was_killed_says_so_and_raises_nothing(house: House) -> None:
    host = await house.start(WISHES + COUNTS + SEEN % 1)
    kill(host)
    fold_result = await folded(host, 2)
    assert (fold_result.verdict.effects, fold_result.layers) == ((), ())
    assert [fault.whose for fault in fold_result.faults] == ["engine"]
    assert not host.alive
    host.feed(wished(1))
    host.quarantine(["wishes"])
    assert await host.keep() == {}


async def test_a_host_that_was_closed_is_no_more_and_may_be_closed_again(house: House) -> None:
    host = await house.start(WISHES)
    await host.close()
    assert not host.alive
    await host.close()
    fold_result = await folded(host, 2)
    assert not fold_result.verdict.effects
    assert fold_result.faults


async def test_recorded_ticks_are_folded_like_the_daemons_own(house: House) -> None:
    host = await house.start(WISHES + COUNTS.replace("seen", "none") + RAISES % "raise ValueError('no')")
    assert host.defined.keys() == set(host.loaded.rules)
    events = wished(3)
    ticks = [RecordedInput(events[tick - 2 : tick - 1], at(tick, events[: tick - 1])) for tick in (2, 3, 4)]
    ticks[2] = ticks[2]._replace(skip=frozenset({"raises"}))
    found = await host.replay(ticks)
    assert sum(one.done for one in found) == 3
    assert not any(one.end for one in found)
    fold_results = {tick: result for one in found for tick, result in one.fold_results.items()}
    assert [result.verdict.effects[-1].key for _, result in sorted(fold_results.items())] == [
        "tick-2",
        "tick-3",
        "tick-4",
    ]
    assert [len(result.faults) for _, result in sorted(fold_results.items())] == [1, 1, 0]
    outcomes = Counter[tuple[str, str]]()
    for one in found:
        outcomes.update(one.outcomes)
    assert outcomes["wishes", "added"] == 3
    assert outcomes["raises", "error"] == 2


async def test_a_host_that_was_killed_replays_nothing_and_says_why(house: House) -> None:
    host = await house.start(WISHES)
    kill(host)
    (one,) = await host.replay([RecordedInput((), at(2))])
    assert one.end is not None
    assert (one.fold_results, one.done) == ({}, 0)
