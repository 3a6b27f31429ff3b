"""The engine from the daemon's side, in virtual time: promotes, rollbacks, quarantine, hosts that die."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from pulse_adapters.memory.engine import MemoryHosts, MemoryRevisions, MemoryRuleHost
from pulse_core.engine.engine_context import EngineParts
from pulse_core.engine.engine_controller import CRASHED, NO_HOST
from pulse_core.model.errors import NotStartable, PulseError, Refused
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import Effect, PromoteRequested, RollbackRequested
from pulse_core.model.payload import Role
from pulse_core.model.verdict import Verdict
from pulse_core.ports.engine import UserProjectionState
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Inner, Rule
from tests.long_form import sampled
from tests.simulation.world import RARE_LOOKS, World, simulate
from upulse_cli.views.status import engine_line

GUARDED = {"process": [{"name": "gateway", "start": ["gateway"]}]}
QUICK: dict[str, Any] = {"daemon": {"tick_ms": 1_000}}


async def wishes(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return (await inner(prev, curr)).plus(Effect(action="note", key=f"by-{curr.engine.commit}"))


async def raises(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    raise RuntimeError("always")


async def spares(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return await inner(prev, curr)


class Bench:
    """An engine in memory with three commits, and its world's story."""

    def __init__(self, **engines: Sequence[Rule] | None) -> None:
        self.revisions = MemoryRevisions({"first": (spares,), **engines}, "first")
        self.hosts = MemoryHosts(self.revisions)
        self.parts = EngineParts(self.revisions, self.hosts)

    def tell(self, story: Callable[[World], Awaitable[None]], settings: dict[str, Any] = QUICK) -> World:
        return simulate(story, {**RARE_LOOKS, **settings}, engine=self.parts)


async def started(world: World) -> None:
    await world.start()
    await asyncio.sleep(0.01)


class SlowHosts(MemoryHosts):
    """Hosts that need a second to start."""

    async def start(self, *args: Any) -> MemoryRuleHost:
        await asyncio.sleep(1)
        return await super().start(*args)


@pytest.mark.parametrize(("rules", "runs"), [((spares,), "first"), (None, None)])
def test_a_host_that_is_starting_is_told_so(rules: Sequence[Rule] | None, runs: str | None) -> None:
    async def story(world: World) -> None:
        await started(world)
        assert world.daemon is not None
        at_once = world.daemon.report()["engine"] or NO_HOST
        assert (at_once["runs"], at_once.get("starting")) == (None, True)
        assert "its host is starting" in engine_line({**at_once}).plain
        await asyncio.sleep(3)
        later = world.daemon.report()["engine"] or NO_HOST
        assert (later["runs"], later.get("starting")) == (runs, False)

    revisions = MemoryRevisions({"first": rules}, "first")
    simulate(story, QUICK, engine=EngineParts(revisions, SlowHosts(revisions)))


async def promoted(
    world: World, commit: str, previous: str = "first", changed: tuple[str, ...] | None = None
) -> Event:
    """What was answered to the wish that this commit be in force; changed: the files that differ."""
    wish = PromoteRequested(previous=previous, why="it is better", changed=changed)
    asked = await world.ask(wish, commit)
    await asyncio.sleep(0.01)
    return next(event for event in reversed(world.events()) if event.cause == asked.id)


def test_the_first_commit_of_all_is_loaded_and_counts_as_promoted() -> None:
    async def story(world: World) -> None:
        await started(world)
        assert [event.subject for event in world.events("promote", "engine-loaded")] == ["first", "first"]
        assert world.daemon is not None
        assert (world.daemon.report()["engine"] or NO_HOST)["rules"] == ["spares"]

    Bench().tell(story)


def test_a_promote_swaps_the_rules_and_main_follows() -> None:
    bench = Bench(second=(wishes,))

    async def story(world: World) -> None:
        await started(world)
        answer = await promoted(world, "second")
        assert (answer.kind, answer.subject) == ("promote", "second")
        assert json.loads(answer.data)["asked_by"] == "person"
        await asyncio.sleep(2)
        assert bench.revisions.main == "second"
        assert world.events("effect", subject="by-second")
        assert [host.closed for host in bench.hosts.started] == [True, False]

    bench.tell(story)


def test_the_commit_in_force_is_not_promoted_again_and_an_answer_that_was_lost_is_given_again() -> None:
    async def story(world: World) -> None:
        await started(world)
        assert world.daemon is not None
        gate = world.daemon.gate
        for commit, words in (("first", "first is in force already"), ("0" * 40, "no commit"), ("", "which")):
            with pytest.raises(Refused, match=words):
                await gate.append(Role.PERSON, "ada", [Draft(PromoteRequested(previous="first"), commit)])
        asked = Draft(PromoteRequested(previous="first"), "second", id="01a20053-73c7-7546-996e-8d2deeafccbd")
        (first,) = await gate.append(Role.PERSON, "ada", [asked])
        await asyncio.sleep(2)
        assert [event.subject for event in world.events("promote")] == ["first", "second"]
        (again,) = await gate.append(Role.PERSON, "ada", [asked])
        assert first.event == again.event
        assert len(world.events("promote-requested")) == 1

    Bench(second=(wishes,)).tell(story)


def test_no_tick_is_missed_by_a_promote() -> None:
    seen: list[int] = []

    async def counts(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        seen.append(curr.tick)
        return await inner(prev, curr)

    bench = Bench(second=(counts,), third=(counts,))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(5)
        await promoted(world, "third", "second")
        await asyncio.sleep(5)
        assert seen == list(range(seen[0], seen[0] + len(seen)))
        assert len(seen) >= 10

    bench.tell(story)


def test_a_commit_that_cannot_be_loaded_is_refused_and_the_old_one_runs_on() -> None:
    bench = Bench(broken=None)

    async def story(world: World) -> None:
        await started(world)
        answer = await promoted(world, "broken")
        assert answer.kind == "promote-refused"
        assert "rules/broken.py:1" in answer.data
        assert bench.revisions.main == "first"
        assert bench.hosts.started[0].alive

    bench.tell(story)


def test_a_promote_over_another_promote_is_refused() -> None:
    bench = Bench(second=(spares,), third=(spares,))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        answer = await promoted(world, "third", previous="first")
        assert answer.kind == "promote-refused"
        assert "promote again" in answer.data

    bench.tell(story)


def test_a_person_goes_back_and_what_was_rejected_is_kept() -> None:
    bench = Bench(second=(spares,))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await world.ask(RollbackRequested(why="no good"), "")
        await asyncio.sleep(0.01)
        (event,) = world.events("rollback")
        said = json.loads(event.data)
        assert (said["to"], said["rejected"]) == ("first", "second")
        assert bench.revisions.branches == {said["kept_as"]: "second"}
        assert bench.revisions.main == event.subject

    bench.tell(story)


def test_with_nothing_to_go_back_to_a_rollback_is_refused() -> None:
    async def story(world: World) -> None:
        await started(world)
        await world.ask(RollbackRequested(), "")
        await asyncio.sleep(0.01)
        assert "no earlier commit" in world.events("promote-refused")[0].data

    Bench().tell(story)


def test_a_promote_whose_rules_raise_is_taken_back_by_itself() -> None:
    bench = Bench(bad=(raises,))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "bad")
        await asyncio.sleep(60)
        (rolled,) = world.events("rollback")
        assert json.loads(rolled.data)["rejected"] == "bad"
        assert bench.revisions.main == rolled.subject
        assert not world.events("rule-quarantined")
        (effect,) = world.events("effect", subject="rollback-engine")
        assert world.events("effect-acked", subject=effect.id)

    bench.tell(story)


def moody(*words: str) -> Rule:
    """A rule that raises each of these once, and the last one again and again."""
    left = list(words)

    async def moody(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        if word := left.pop(0) if len(left) > 1 else left[0]:
            raise RuntimeError(word)
        return await inner(prev, curr)

    return moody


@pytest.mark.parametrize(
    ("raised", "changed", "is_taken_back"),
    sampled(
        [
            ("the table is missing", ("rules/moody.py",), True),
            ("the table is missing", ("rules/other.py",), True),
            ("no answer", ("rules/moody.py",), True),
            ("no answer", ("rules/other.py",), False),
        ],
        3,
    ),
)
def test_one_error_of_a_rule_excuses_the_same_one_of_the_same_code_in_a_later_promote_and_nothing_else(
    raised: str, changed: tuple[str, ...], is_taken_back: bool
) -> None:
    bench = Bench(second=(moody("", "no answer", ""),), third=(moody(raised),))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(660)
        await world.end()  # so that it erred within the last minutes
        bench.revisions.engines["second"] = (moody("no answer", ""),)
        await started(world)
        await asyncio.sleep(5)
        await promoted(world, "third", "second", changed)
        await asyncio.sleep(60)
        assert bool(world.events("rollback")) is is_taken_back
        assert bool(world.events("rule-quarantined")) is not is_taken_back

    bench.tell(story)


MISSING = {"process": [{"name": "ghost", "start": ["ghost"], "restart": {"max": 1_000, "backoff": "1s"}}]}


def test_a_program_that_is_missing_is_not_held_against_commits_that_it_was_missing_under_or_long_after() -> (
    None
):
    bench = Bench(second=(spares,), third=(spares,))

    async def missing(event: Event) -> None:
        raise PulseError("ghost: no such file")

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(61)
        world.executors["restart-process"].deed = missing
        world.host.kill("ghost")
        await asyncio.sleep(600)
        failed = len(world.events("effect-failed"))
        assert failed >= 5
        await promoted(world, "third", "second")
        await asyncio.sleep(600)
        assert len(world.events("effect-failed")) > failed
        assert not world.events("rollback")

    bench.tell(story, {**MISSING, "daemon": {"tick_ms": 10_000}, "engine": {"watch": "1m"}})


@pytest.mark.parametrize(
    ("failure", "rejected"),
    sampled(
        [
            (PulseError("ghost did not come up"), ["second"]),
            (NotStartable("ghost: there is no such program in PATH"), []),
        ],
        2,
    ),
)
def test_survival_that_begins_to_fail_after_a_promote_takes_it_back_unless_a_program_is_missing(
    failure: PulseError, rejected: list[str]
) -> None:
    bench = Bench(second=(spares,))

    async def missing(event: Event) -> None:
        raise failure

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        world.executors["restart-process"].deed = missing
        world.host.kill("ghost")
        await asyncio.sleep(600)
        assert len(world.events("effect-failed")) >= 3
        assert [json.loads(event.data)["rejected"] for event in world.events("rollback")] == rejected

    bench.tell(story, {**MISSING, **QUICK})


def test_a_rule_that_fails_for_long_is_passed_over_once_its_commit_is_not_watched_any_more() -> None:
    turns = {"fails": False}

    async def later(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        if turns["fails"]:
            raise RuntimeError("now it does")
        return await inner(prev, curr)

    bench = Bench(second=(later,))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(700)
        turns["fails"] = True
        await asyncio.sleep(30)
        (event,) = world.events("rule-quarantined")
        assert event.subject == "later"
        assert not world.events("rollback")
        errors = len(world.events("error", subject="rule:later"))
        assert errors <= 6
        await world.end()
        await started(world)
        await asyncio.sleep(30)
        assert len(world.events("error", subject="rule:later")) == errors  # a restart does not forget

    bench.tell(story)


def test_a_host_that_dies_is_started_again_and_again_at_growing_intervals() -> None:
    bench = Bench()

    async def story(world: World) -> None:
        await started(world)
        for _ in range(200):
            bench.hosts.started[-1].alive = False
            await asyncio.sleep(1)
        assert 5 <= len(bench.hosts.started) <= 20
        await asyncio.sleep(400)
        assert bench.hosts.started[-1].alive

    bench.tell(story)


def test_a_promote_whose_host_dies_again_and_again_is_taken_back_and_once_is_borne() -> None:
    bench = Bench(frail=(spares,))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "frail")
        for deaths in range(1, 6):
            assert not world.events("rollback")
            bench.hosts.started[-1].alive = False
            await asyncio.sleep(40)
            assert len(world.events("error", subject="engine")) == deaths
        (rolled,) = world.events("rollback")
        assert json.loads(rolled.data)["rejected"] == "frail"
        assert bench.revisions.main == rolled.subject
        assert bench.hosts.started[-1].alive

    bench.tell(story)


def test_at_boot_the_last_good_commit_runs_where_the_one_in_force_cannot_be_loaded() -> None:
    bench = Bench(second=(wishes,))

    async def story(world: World) -> None:
        await started(world)
        await asyncio.sleep(700)
        await promoted(world, "second")
        await asyncio.sleep(700)
        await world.end()
        bench.revisions.engines["second"] = None
        await started(world)
        loaded = world.events("engine-loaded")[-1]
        assert loaded.subject == "first"
        assert json.loads(loaded.data)["instead_of"] == "second"
        assert world.daemon is not None
        assert (world.daemon.report()["engine"] or NO_HOST)["degraded"] is True
        assert [event.subject for event in world.events("error")] == ["engine"]

    bench.tell(story)


def test_what_cannot_be_loaded_while_it_is_watched_is_taken_back() -> None:
    bench = Bench(second=(wishes,))

    async def story(world: World) -> None:
        await started(world)
        await asyncio.sleep(700)
        await promoted(world, "second")
        await world.end()
        bench.revisions.engines["second"] = None
        await started(world)
        rolled = world.events("rollback")[-1]
        told = json.loads(rolled.data)
        assert (told["rejected"], told["to"]) == ("second", "first")
        assert "can't be loaded" in told["why"]
        assert world.daemon is not None
        assert (world.daemon.report()["engine"] or NO_HOST)["degraded"] is False

    bench.tell(story)


def test_a_request_that_a_daemon_crashed_in_is_refused_and_one_that_it_left_or_had_not_begun_is_done() -> (
    None
):
    bench = Bench(second=(spares,), third=(spares,))

    async def story(world: World) -> None:
        await started(world)
        asked = await world.ask(PromoteRequested(previous="first"), "second")
        assert [event.subject for event in world.events("engine-change-started")] == [asked.id]
        await world.crash()
        await started(world)
        (refused,) = world.events("promote-refused")
        assert (refused.cause, json.loads(refused.data)["why"]) == (asked.id, CRASHED)
        assert bench.revisions.main == "first"
        left = await world.ask(PromoteRequested(previous="first"), "second")
        await world.end()
        await started(world)
        assert [event.cause for event in world.events("promote")][-1] == left.id
        await world.crash()
        later = await world.log.append(Draft(PromoteRequested(previous="second"), "third"))
        await started(world)
        assert [event.cause for event in world.events("promote")][-1] == later[0].id
        assert bench.revisions.main == "third"

    bench.tell(story)


def test_main_follows_a_promote_that_a_crash_cut_off_from_it() -> None:
    bench = Bench(second=(spares,))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await world.crash()
        bench.revisions.main = "first"
        await started(world)
        assert bench.revisions.main == "second"

    bench.tell(story)


def test_main_follows_though_git_could_not_move_it_at_first() -> None:
    bench, tries = Bench(second=(wishes,)), list[str]()
    point_main = bench.revisions.point_main

    async def failing_once(commit: str, expected: str) -> str:
        tries.append(commit)
        if tries == ["first", "second"]:
            raise PulseError("git point-main did not answer")
        return await point_main(commit, expected)

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        await asyncio.sleep(180)
        assert bench.revisions.main == "second"
        assert tries == ["first", "second", "second"]

    bench.revisions.point_main = failing_once  # type: ignore[method-assign] # as git may
    bench.tell(story)


def test_where_is_kept_what_somebody_had_changed_in_the_engines_files_is_told() -> None:
    bench = Bench(second=(wishes,))

    async def story(world: World) -> None:
        await started(world)
        bench.revisions.stray = "stray/1"
        await promoted(world, "second")
        await asyncio.sleep(180)
        told = [json.loads(one.data)["message"] for one in world.events("error", subject="engine")]
        assert told == [
            "engine/ holds the files of second now; what was changed there by hand is in the branch stray/1"
        ]

    bench.tell(story)


def test_what_is_in_force_runs_though_its_host_could_not_be_told_what_was_recorded_meanwhile() -> None:
    bench, failed = Bench(second=(wishes,)), list[str]()

    async def story(world: World) -> None:
        since = world.log.since

        def failing_once(seq: int, *words: Any, **more: Any) -> AsyncIterator[Sequence[Event]]:
            if world.events("promote", subject="second") and not (words or more or failed):
                failed.append("second")
                raise PulseError("the log can't be read: Input/output error")
            return since(seq, *words, **more)

        world.log.since = failing_once  # type: ignore[method-assign] # as a disk may
        await started(world)
        assert (await promoted(world, "second")).kind == "promote"
        await asyncio.sleep(10)
        assert failed == ["second"]
        assert world.daemon is not None
        assert (world.daemon.report()["engine"] or NO_HOST)["runs"] == "second"

    bench.tell(story)


def test_projections_are_kept_of_the_host_that_nobody_else_asks_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[MemoryRuleHost] = []

    async def keep(host: MemoryRuleHost) -> Mapping[str, UserProjectionState]:
        kept.append(host)
        return {}

    monkeypatch.setattr(MemoryRuleHost, "keep", keep)

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        controller = world.daemon.engine_controller if world.daemon else None
        assert controller is not None
        supervisor = controller.host_supervisor
        running = supervisor.running
        assert running is not None
        async with running.lock:  # a fold is under way
            keeping = asyncio.create_task(supervisor.save_user_projections())
            await asyncio.sleep(0.1)
            going_back = asyncio.create_task(controller.roll_back("first", "second", "it is worse"))
            await asyncio.sleep(0.1)
            assert supervisor.running is not running
        await asyncio.gather(keeping, going_back)
        assert kept == [running.host]

    Bench(second=(spares,)).tell(story)


def test_a_rollback_that_is_recorded_only_after_it_was_broken_off_is_carried_out() -> None:
    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "second")
        controller = world.daemon.engine_controller if world.daemon else None
        assert controller is not None
        world.log.commit = lambda: asyncio.sleep(90)  # its disk hangs for longer than the effect may take
        going_back = asyncio.create_task(controller.roll_back("first", "second", "it is worse"))
        await asyncio.sleep(60)
        going_back.cancel()
        await asyncio.sleep(10)
        assert going_back.cancelled()
        assert not world.events("rollback")
        await asyncio.sleep(30)
        world.log.commit = None
        await asyncio.sleep(90)
        (rolled,) = world.events("rollback")
        running = controller.host_supervisor.running
        assert running is not None
        assert running.commit == controller.engine.commit == rolled.subject

    Bench(second=(spares,)).tell(story)


def test_a_guarded_process_is_back_at_once_whatever_the_rules_do() -> None:
    async def forever(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        await asyncio.sleep(3600)
        return await inner(prev, curr)

    bench = Bench(stuck=(forever,))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "stuck")
        await asyncio.sleep(30)
        world.host.kill("gateway")
        await asyncio.sleep(0.02)
        died = world.events("process-died", subject="gateway")[-1]
        wish = world.events("effect", subject="restart-process:gateway")[-1]
        assert wish.at - died.at < 20_000

    bench.tell(story, {**GUARDED, **QUICK})


def test_the_engine_can_be_switched_off() -> None:
    bench = Bench()

    async def story(world: World) -> None:
        await started(world)
        assert not bench.hosts.started

    bench.tell(story, {"engine": {"enabled": False}})


async def floods(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    wishes = (Effect(action="note", key=f"flood-{curr.tick}-{number}") for number in range(100))
    return (await inner(prev, curr)).plus(*wishes)


async def poaches(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return (await inner(prev, curr)).plus(Effect(action="note", key="restart-process:gateway"))


async def repeats(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return (await inner(prev, curr)).plus(Effect(action="note", key="again"))


async def lives_through_a_death(world: World, after: float = 30) -> None:
    """The guarded process is back within milliseconds of the log's own time."""
    await asyncio.sleep(after)
    world.host.kill("gateway")
    await asyncio.sleep(0.02)
    died = world.events("process-died", subject="gateway")[-1]
    wish = world.events("effect", subject="restart-process:gateway")[-1]
    assert 0 <= wish.at - died.at < 20_000


def test_a_flood_of_wishes_is_bounded_and_spends_nothing_of_survivals_budget() -> None:
    bench = Bench(bad=(floods,))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "bad")
        await lives_through_a_death(world)
        assert len([one for one in world.events("effect") if one.subject.startswith("flood")]) == 60
        assert len(world.events("effect", subject="notify:blast-radius:engine")) == 1
        await asyncio.sleep(600)
        (told,) = world.events("effect", subject="notify:blast-radius:engine")
        assert "effects of your rules held back" in told.data
        assert "floods: flood-" in told.data
        assert world.daemon is not None
        (held,) = world.daemon.report()["held_back"]
        assert "effects of your rules held back: 60 a minute" in held
        await world.ask(RollbackRequested(), "")
        await asyncio.sleep(700)
        assert '"over":true' in world.events("effect", subject="notify:blast-radius:engine")[-1].data
        assert len(world.events("effect", subject="notify:blast-radius:engine")) == 2
        assert world.daemon.report()["held_back"] == ()

    bench.tell(story, {**GUARDED, **QUICK})


def test_a_rule_cannot_hold_open_what_survival_needs() -> None:
    bench = Bench(bad=(poaches,))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "bad")
        await lives_through_a_death(world, after=3)
        assert "Pulse's own" in world.events("error", subject="rule:poaches")[0].data

    bench.tell(story, {**GUARDED, **QUICK})


def test_a_rule_that_wishes_the_same_in_every_tick_is_not_answered_in_a_circle() -> None:
    bench = Bench(eager=(repeats,))

    async def story(world: World) -> None:
        await started(world)
        await promoted(world, "eager")
        await asyncio.sleep(95)
        assert len(world.events("effect", subject="again")) == 4

    bench.tell(story)
