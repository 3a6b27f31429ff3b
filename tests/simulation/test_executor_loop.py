"""The executor loop as the daemon runs it: begun once, settled once, whatever happens between."""

import asyncio
import errno
import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from pulse_adapters.memory.executors import MemoryExecutor, MemoryRestart, at_once
from pulse_core.execute import effect_tasks
from pulse_core.execute.limits import MOST
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import (
    Effect,
    EffectAttemptFailed,
    EffectCancelRequested,
    EffectExecuting,
    Paused,
    Resumed,
)
from pulse_core.model.verdict import Verdict
from pulse_core.ports.executor import PartlyDone, Policy, Result, Safety, Unsure
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Inner
from tests.simulation.world import World, simulate

NOTHING: dict[str, Any] = {}
NOTE = Effect(action="note", key="k")


def life(world: World, id_: str) -> list[str]:
    return [event.kind.removeprefix("effect-") for event in world.events(subject=id_)]


def told(world: World, kind: str) -> dict[str, Any]:
    return dict(json.loads(world.events(kind)[-1].data))


def with_note(world: World, deed: Any = None, **policy: Any) -> MemoryExecutor:
    rule = Policy(**{"safety": Safety.IDEMPOTENT, **policy})
    executor = MemoryExecutor("note", rule, **({"deed": deed} if deed else {}))
    world.executors["note"] = executor
    return executor


async def never(_event: Event) -> None:
    await asyncio.sleep(10**9)


async def failing(_event: Event) -> None:
    raise PulseError("the thing is broken")


def test_an_effect_is_said_to_begin_before_it_does() -> None:
    async def story(world: World) -> None:
        seen: list[list[str]] = []

        async def looking(event: Event) -> None:
            seen.append(life(world, event.id))

        with_note(world, looking)
        await world.start()
        wish = await world.ask(NOTE)
        await asyncio.sleep(1)
        assert seen == [["executing"]]
        assert life(world, wish.id) == ["executing", "acked"]

    simulate(story, NOTHING)


def test_a_failure_is_tried_again_and_then_settled() -> None:
    async def story(world: World) -> None:
        with_note(world, failing, retries=2)
        await world.start()
        wish = await world.ask(NOTE)
        await asyncio.sleep(60)
        failed = ["executing", "attempt-failed", "executing", "attempt-failed", "executing", "failed"]
        assert life(world, wish.id) == failed
        assert told(world, "effect-failed")["error"] == "the thing is broken"

    simulate(story, NOTHING)


def test_pauses_between_attempts_grow() -> None:
    async def story(world: World) -> None:
        with_note(world, failing, retries=3, backoff=10.0)
        await world.start()
        wish = await world.ask(NOTE)
        await asyncio.sleep(300)
        starts = [event.mono for event in world.events("effect-executing", subject=wish.id)]
        gaps = [(later - earlier) / 1e6 for earlier, later in pairwise(starts)]
        for gap, least in zip(gaps, (10, 20, 40), strict=True):
            assert least <= gap <= 1.3 * least + 0.1

    simulate(story, NOTHING)


def test_however_often_an_engine_tries_again_attempts_have_the_budget_of_actions() -> None:
    async def story(world: World) -> None:
        with_note(world, failing, retries=1_000, backoff=0.0, backoff_max=0.0)
        await world.start()
        wishes = [await world.ask(keyed(number)) for number in range(3)]
        await asyncio.sleep(125)
        first = await world.ask(keyed(4))
        await asyncio.sleep(1)
        again = [event for event in world.events("effect-executing") if event.subject != first.id]
        assert len(again) == len(wishes) + 3 * 10
        assert life(world, first.id)[:2] == ["executing", "attempt-failed"]

    def keyed(number: int) -> Effect:
        return NOTE.model_copy(update={"key": f"k{number}"})

    simulate(story, {"budget": {"actions_per_minute": 10}})


def test_what_must_not_run_twice_is_never_retried() -> None:
    async def story(world: World) -> None:
        executor = with_note(world, failing, safety=Safety.AT_MOST_ONCE, retries=5)
        await world.start()
        wish = await world.ask(NOTE)
        await asyncio.sleep(600)
        assert life(world, wish.id) == ["executing", "failed"]
        assert executor.began == [wish.id]

    simulate(story, NOTHING)


def test_a_deed_that_takes_too_long_is_ended() -> None:
    async def story(world: World) -> None:
        with_note(world, never, timeout=7.0)
        await world.start()
        await world.ask(NOTE)
        await asyncio.sleep(10)
        assert "not done within 7 s" in told(world, "effect-failed")["error"]

    simulate(story, NOTHING)


def test_a_timeout_of_what_an_executor_asks_is_told_as_that() -> None:
    async def asking(_event: Event) -> None:
        raise TimeoutError("the file system of /srv does not answer")

    async def story(world: World) -> None:
        with_note(world, asking, timeout=7.0)
        await world.start()
        await world.ask(NOTE)
        await asyncio.sleep(1)
        assert (
            told(world, "effect-failed")["error"] == "TimeoutError: the file system of /srv does not answer"
        )

    simulate(story, NOTHING)


def test_an_executor_that_cannot_tell_leaves_the_effect_unknown() -> None:
    async def unsure(_event: Event) -> None:
        raise Unsure("the line went dead")

    async def story(world: World) -> None:
        with_note(world, unsure, retries=5)
        await world.start()
        wish = await world.ask(NOTE)
        await asyncio.sleep(60)
        assert life(world, wish.id) == ["executing", "unknown"]

    simulate(story, NOTHING)


def test_a_bug_in_an_executor_is_the_outcome_of_its_effect_alone() -> None:
    async def buggy(_event: Event) -> None:
        raise ZeroDivisionError("oh")

    async def story(world: World) -> None:
        with_note(world, buggy)
        await world.start()
        await world.ask(NOTE)
        await asyncio.sleep(1)
        assert told(world, "effect-failed")["error"] == "ZeroDivisionError: oh"
        assert world.service_manager.told == ["ready"]

    simulate(story, NOTHING)


def test_no_more_run_at_a_time_than_there_are_slots() -> None:
    async def story(world: World) -> None:
        now, most = [0], [0]

        async def counted(_event: Event) -> None:
            now[0] += 1
            most[0] = max(most[0], now[0])
            await asyncio.sleep(1)
            now[0] -= 1

        executor = with_note(world, counted)
        await world.start()
        for number in range(20):
            await world.ask(NOTE.model_copy(update={"key": f"k{number}"}))
        await asyncio.sleep(60)
        assert most == [4]
        assert len(executor.done) == 20

    simulate(story, {"daemon": {"concurrency": 4}})


def test_an_action_that_declares_so_runs_once_at_a_time_while_others_go_on() -> None:
    async def story(world: World) -> None:
        now, most = [0], [0]

        async def counted(_event: Event) -> None:
            now[0] += 1
            most[0] = max(most[0], now[0])
            await asyncio.sleep(1)
            now[0] -= 1

        world.executors["collect"] = executor = MemoryExecutor("collect", deed=counted)
        await world.start()
        for number in range(5):
            await world.ask(Effect(action="collect", key=f"my:{number}"))
        note = await world.ask(NOTE)
        await asyncio.sleep(0.1)
        assert life(world, note.id) == ["executing", "acked"]
        await asyncio.sleep(10)
        assert (most, len(executor.done)) == ([1], 5)

    simulate(story, NOTHING)


def test_survival_acts_while_what_rules_requested_never_ends_and_it_is_said_who_holds_the_slots() -> None:
    async def story(world: World) -> None:
        with_note(world, never, timeout=10**8)
        await world.start()
        for number in range(64):
            await world.ask(NOTE.model_copy(update={"key": f"k{number}"}))
        await asyncio.sleep(60)
        other = await world.ask(Effect(action="notify", key="also", params={"text": "it"}))
        world.host.kill("gateway")
        await asyncio.sleep(1)
        assert life(world, other.id) == ["executing", "acked"]
        assert len(world.host.starts) == 2, "the first one, and after the kill"
        errors = [json.loads(event.data)["message"] for event in world.events("error", subject="executor")]
        assert errors
        assert set(errors) == {"effects have been waiting for a slot; these are held: note 4"}

    simulate(story, {"daemon": {"concurrency": 4}, "process": [{"name": "gateway", "start": ["gateway"]}]})


def test_who_dies_is_started_though_a_restart_that_a_person_wished_for_came_behind_what_never_ends() -> None:
    """Only one restart of a process is open at a time: the person's own one would keep survival from starting it."""

    async def story(world: World) -> None:
        with_note(world, never, timeout=10**8)
        for action in ("other", "run-command"):
            world.executors[action] = MemoryExecutor(action, Policy(Safety.IDEMPOTENT, timeout=10**8), never)
        await world.start()
        await asyncio.sleep(10)
        for number in range(12):
            action = ("note", "other", "run-command")[number % 3]
            await world.ask(Effect(action=action, key=f"k{number}", params={"argv": ["x"]}))
        await asyncio.sleep(1)
        await world.ask(Effect(action="restart-process", key="by hand", params={"process": "gateway"}))
        await asyncio.sleep(200)
        world.host.kill("gateway")
        await asyncio.sleep(1)
        assert len(world.host.starts) == 3, "the first one, by hand, and after the kill"
        assert not world.host.started_twice

    simulate(story, {"daemon": {"concurrency": 4}, "process": [{"name": "gateway", "start": ["gateway"]}]})


def test_who_dies_beside_a_crowd_does_not_wait_for_it_and_of_the_crowd_nobody_waits_for_ever() -> None:
    crowd, others = ([f"{what}{number}" for number in range(20)] for what in ("crowd", "other"))

    async def story(world: World) -> None:
        await world.start()
        await asyncio.sleep(100)
        restarts, before = world.executors["restart-process"], len(world.host.starts)
        assert isinstance(restarts, MemoryRestart)
        restarts.seconds = 1.0
        for name in crowd:
            world.host.kill(name)
        for name in others:
            await asyncio.sleep(0.5)
            world.host.kill(name)
        await asyncio.sleep(60)
        begun = [name for name, _ in world.host.starts[before:]]
        assert begun.index("other0") < 5, "it died just after the crowd"
        assert begun.index("crowd2") < 5, (
            "it waited first for a slot, and as many died later as could be started"
        )
        assert sorted(begun) == sorted([*crowd, *others])

    processes = [{"name": name, "start": [name]} for name in (*crowd, *others)]
    simulate(story, {"daemon": {"concurrency": 2}, "process": processes})


def test_who_dies_once_does_not_wait_for_the_next_tries_of_those_that_keep_dying() -> None:
    crowd, others = (
        [f"{what}{number}" for number in range(count)] for what, count in (("crowd", 40), ("it", 5))
    )

    async def story(world: World) -> None:
        restarts = world.executors["restart-process"]
        assert isinstance(restarts, MemoryRestart)
        restarts.seconds = 1.0
        world.host.dying.update(crowd)
        await world.start()
        await asyncio.sleep(100)
        before = len(world.host.starts)
        for name in others:
            world.host.kill(name)
        await asyncio.sleep(6)
        assert {name for name, _ in world.host.starts[before:]} > {*others}
        await asyncio.sleep(60)
        assert {name for name, _ in world.host.starts[before:]} == {*others, *crowd}, "nobody waits for ever"

    again = {"max": 1000, "within": "1h", "backoff": "10ms", "backoff_max": "10ms", "grace": "0s"}
    keep_dying = [{"name": name, "start": [name], "restart": again} for name in crowd]
    processes = [*keep_dying, *({"name": name, "start": [name]} for name in others)]
    settings = {"daemon": {"concurrency": 2}, "budget": {"actions_per_minute": 0}, "process": processes}
    simulate(story, settings)


def test_a_cooldown_keeps_actions_of_one_key_apart() -> None:
    async def story(world: World) -> None:
        with_note(world, cooldown=100.0)
        await world.start()
        await world.ask(NOTE)
        await asyncio.sleep(10)
        await world.ask(NOTE)
        await asyncio.sleep(80)
        assert len(world.events("effect-executing")) == 1
        await asyncio.sleep(20)
        assert len(world.events("effect-executing")) == 2

    simulate(story, NOTHING)


def test_a_cooldown_holds_for_a_rule_that_wishes_again_in_every_tick_what_has_failed() -> None:
    async def again(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        return (await inner(prev, curr)).plus(NOTE)

    async def story(world: World) -> None:
        with_note(world, failing, cooldown=100.0)
        await world.start()
        await asyncio.sleep(90)
        assert (len(world.events("effect")), len(world.events("effect-executing"))) == (2, 1)
        await asyncio.sleep(100)
        assert (len(world.events("effect")), len(world.events("effect-executing"))) == (3, 2)

    simulate(story, NOTHING, rules=(again,))


def test_a_stale_effect_is_cancelled_and_not_begun() -> None:
    async def story(world: World) -> None:
        await world.start()
        await world.ask(Paused())
        wish = await world.ask(NOTE.model_copy(update={"not_after": world.clock.now().at + 5_000_000}))
        await asyncio.sleep(10)
        await world.ask(Resumed())
        await asyncio.sleep(1)
        assert life(world, wish.id) == ["cancelled"]
        assert "its time was over" in told(world, "effect-cancelled")["why"]

    simulate(story, NOTHING)


def test_a_jump_of_the_clock_makes_nothing_stale() -> None:
    async def story(world: World) -> None:
        await world.start()
        await world.ask(Paused())
        wish = await world.ask(NOTE.model_copy(update={"not_after": world.clock.now().at + 60_000_000}))
        world.clock.jump(10**13)
        await world.ask(Resumed())
        await asyncio.sleep(5)
        assert life(world, wish.id) == ["executing", "acked"]

    simulate(story, NOTHING)


def test_a_pending_effect_can_be_cancelled() -> None:
    async def story(world: World) -> None:
        await world.start()
        await world.ask(Paused())
        wish = await world.ask(NOTE)
        await world.ask(EffectCancelRequested(), wish.id, actor="ada")
        await asyncio.sleep(2)
        assert told(world, "effect-cancelled")["why"] == "cancelled by ada"

    simulate(story, NOTHING)


def test_an_executing_effect_can_be_cancelled() -> None:
    async def story(world: World) -> None:
        with_note(world, never, timeout=10**6)
        await world.start()
        wish = await world.ask(NOTE)
        await asyncio.sleep(1)
        await world.ask(EffectCancelRequested(), wish.id, actor="ada")
        await asyncio.sleep(2)
        assert life(world, wish.id) == ["executing", "cancel-requested", "cancelled"]

    simulate(story, NOTHING)


def test_an_effect_can_be_cancelled_while_it_is_recorded_that_it_begins() -> None:
    async def story(world: World) -> None:
        with_note(world, never, timeout=10**6)
        daemon = await world.start()
        await world.ask(Paused())
        wish = await world.ask(NOTE)
        world.log.commit = lambda: asyncio.sleep(0.1)
        await asyncio.gather(world.ask(Resumed()), world.ask(EffectCancelRequested(), wish.id, actor="ada"))
        await asyncio.sleep(2)
        assert life(world, wish.id) == ["cancel-requested", "executing", "cancelled"]
        assert not daemon.executor.workers.running
        assert str(daemon.executor.slots) == ""

    simulate(story, NOTHING)


@pytest.mark.parametrize(
    ("safety", "fate"),
    [
        (Safety.IDEMPOTENT, ["executing", "executing", "acked"]),
        (Safety.VERIFY_FIRST, ["executing", "executing", "acked"]),
        (Safety.AT_MOST_ONCE, ["executing", "unknown"]),
    ],
)
def test_what_a_crash_interrupted_is_settled_by_its_class(safety: Safety, fate: list[str]) -> None:
    async def story(world: World) -> None:
        executor = with_note(world, never, safety=safety, timeout=10**6)
        await world.start()
        wish = await world.ask(NOTE)
        await asyncio.sleep(1)
        await world.crash()
        world.executors["note"] = replace(executor, deed=MemoryExecutor("x").deed)
        await world.start()
        await asyncio.sleep(1)
        assert life(world, wish.id) == fate
        # It doesn't run beside itself: what it left is ended before it begins a second time, and only then.
        assert world.remains == ([] if safety is Safety.AT_MOST_ONCE else [(wish.id, [1])])

    simulate(story, NOTHING)


def test_what_happened_before_a_crash_is_seen_and_not_done_again() -> None:
    async def story(world: World) -> None:
        executor = with_note(world, never, safety=Safety.VERIFY_FIRST, timeout=10**6)
        await world.start()
        wish = await world.ask(NOTE)
        await asyncio.sleep(1)
        await world.crash()
        executor.done.append(wish.id)
        await world.start()
        await asyncio.sleep(1)
        assert life(world, wish.id) == ["executing", "acked"]
        assert executor.began == [wish.id]

    simulate(story, NOTHING)


def test_an_effect_that_kills_the_daemon_is_given_up() -> None:
    async def story(world: World) -> None:
        with_note(world, never, timeout=10**6)
        await world.start()
        wish = await world.ask(NOTE)
        for _ in range(15):
            await asyncio.sleep(1)
            await world.crash()
            await world.start()
        assert life(world, wish.id)[-1] == "failed"
        assert "interrupted 11 times" in told(world, "effect-failed")["error"]

    simulate(story, NOTHING)


def test_what_was_interrupted_and_whose_remains_cannot_be_ended_is_not_begun_again_and_ends_no_loop() -> None:
    async def out_of_descriptors(effect: str) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async def story(world: World) -> None:
        executor = with_note(world)
        await world.log.append(Draft(NOTE, NOTE.key, id="wish"), Draft(EffectExecuting(), "wish"))
        world._end_remains = out_of_descriptors  # type: ignore[method-assign] # as the real one may
        await world.start()
        await asyncio.sleep(2)
        assert life(world, "wish") == ["executing", "unknown"]
        assert "Too many open files" in told(world, "effect-unknown")["why"]
        assert executor.began == []

    simulate(story, NOTHING)


def test_what_is_cancelled_while_its_remains_are_ended_is_settled_and_not_begun_again() -> None:
    async def slow(effect: str) -> None:
        await asyncio.sleep(1)

    async def story(world: World) -> None:
        executor = with_note(world)
        await world.log.append(Draft(NOTE, NOTE.key, id="wish"), Draft(EffectExecuting(), "wish"))
        world._end_remains = slow  # type: ignore[method-assign] # as the real one may be
        await world.start()
        await world.ask(EffectCancelRequested(), "wish")
        await asyncio.sleep(2)
        assert life(world, "wish")[-1] == "cancelled"
        assert executor.began == []

    simulate(story, NOTHING)


def test_an_executor_that_cancels_itself_while_it_looks_cannot_tell() -> None:
    class Cancelling(MemoryExecutor):
        async def verify(self, effect: Effect, params: Any, event: Event) -> Result | None:
            raise asyncio.CancelledError

    async def story(world: World) -> None:
        world.executors["note"] = Cancelling("note", Policy(Safety.VERIFY_FIRST))
        await world.log.append(Draft(NOTE, NOTE.key, id="wish"), Draft(EffectExecuting(), "wish"))
        await world.start()
        await asyncio.sleep(2)
        assert life(world, "wish") == ["executing", "unknown"]

    simulate(story, NOTHING)


def test_an_effect_nobody_can_carry_out_any_more_is_settled() -> None:
    async def story(world: World) -> None:
        await world.start()
        await world.ask(Paused())
        wish = await world.ask(NOTE)
        await world.end()
        del world.executors["note"]
        await world.start()
        await world.ask(Resumed())
        await asyncio.sleep(2)
        assert life(world, wish.id) == ["failed"]

    simulate(story, NOTHING)


@pytest.mark.parametrize(
    ("begun", "fate"), [(True, ["executing", "unknown"]), (False, ["failed"])], ids=["begun", "waiting"]
)
def test_an_effect_of_a_newer_version_that_this_one_cannot_read_is_settled_and_ends_no_loop(
    begun: bool, fate: list[str]
) -> None:
    newer = {
        "action": "restart-process",
        "key": "k",
        "params": {"process": "gone"},
        "survival": True,
        "tick": 1,
        "of_a_newer_version": 1,
    }

    async def story(world: World) -> None:
        wish = Effect(action="restart-process", key="k")
        rows = [Draft(wish, "k", id="wish", data=json.dumps(newer))]
        await world.log.append(*rows, *([Draft(EffectExecuting(), "wish")] if begun else []))
        await world.start()  # what it guards is down, so it starts that at once
        await asyncio.sleep(2)
        assert life(world, "wish") == fate
        assert "gateway" in world.host.processes

    simulate(story, {"process": [{"name": "gateway", "start": ["gateway"]}]})


def test_a_notice_of_a_newer_version_that_this_one_cannot_read_holds_up_no_other() -> None:
    newer = {"action": "notify", "key": "notify:old", "params": {"title": "old"}, "of_a_newer_version": 1}

    async def story(world: World) -> None:
        wish = Effect(action="notify", key="notify:old")
        began = [
            Draft(EffectExecuting(), "wish"),
            Draft(EffectAttemptFailed(attempt=1, error="-", retry_us=10**9), "wish"),
        ]
        await world.log.append(Draft(wish, "notify:old", id="wish", data=json.dumps(newer)), *began)
        notice = Effect(action="notify", key="notify:new", params={"title": "new"})
        await world.log.append(Draft(notice, "notify:new", id="new"))
        await world.start()
        await asyncio.sleep(60)
        assert life(world, "wish")[-1] == "failed"
        assert life(world, "new") == ["executing", "acked"]

    simulate(story, {"notify": {"urls": ["https://example.org/hook"]}})


def test_a_graceful_stop_lets_running_effects_end() -> None:
    async def some_seconds(_event: Event) -> None:
        await asyncio.sleep(5)

    async def story(world: World) -> None:
        with_note(world, some_seconds)
        await world.start()
        wish = await world.ask(NOTE)
        await asyncio.sleep(1)
        await world.end()
        assert life(world, wish.id) == ["executing", "acked"]
        assert world.log.events[-1].kind == "daemon-stopped"

    simulate(story, NOTHING)


def test_a_stop_does_not_wait_longer_than_its_grace() -> None:
    async def story(world: World) -> None:
        with_note(world, never, timeout=10**6)
        await world.start()
        await world.ask(NOTE)
        await asyncio.sleep(1)
        before = asyncio.get_running_loop().time()
        await world.end()
        assert asyncio.get_running_loop().time() - before < 4
        assert world.log.events[-1].kind == "daemon-stopped"

    simulate(story, {"daemon": {"stop_grace": "3s"}})


@pytest.mark.parametrize("safety", list(Safety))
@pytest.mark.parametrize("paused", [False, True])
def test_a_cancel_while_the_daemon_is_down_is_heard_at_its_start(safety: Safety, paused: bool) -> None:
    async def story(world: World) -> None:
        with_note(world, never, safety=safety, timeout=10**6)
        await world.start()
        wish = await world.ask(NOTE)
        await asyncio.sleep(1)
        await world.ask(EffectCancelRequested(), wish.id)
        if paused:
            await world.ask(Paused())
        await world.crash()
        await world.start()
        await asyncio.sleep(5)
        assert life(world, wish.id)[-1] in ("cancelled", "unknown")
        assert len(world.executors["note"].began) == 1

    simulate(story, NOTHING)


def test_what_was_interrupted_is_not_begun_again_while_pulse_is_paused() -> None:
    async def story(world: World) -> None:
        executor = with_note(world, never, timeout=10**6)
        await world.start()
        wish = await world.ask(NOTE)
        await asyncio.sleep(1)
        await world.ask(Paused())
        await world.crash()
        await world.start()
        await asyncio.sleep(100)
        assert executor.began == [wish.id]
        await world.ask(Resumed())
        await asyncio.sleep(2)
        assert executor.began == [wish.id, wish.id]

    simulate(story, NOTHING)


def test_what_became_stale_while_the_daemon_was_down_is_not_begun_again() -> None:
    async def story(world: World) -> None:
        executor = with_note(world, never, timeout=10**6)
        await world.start()
        wish = await world.ask(NOTE.model_copy(update={"not_after": world.clock.now().at + 5_000_000}))
        await asyncio.sleep(1)
        await world.crash()
        await asyncio.sleep(10)
        await world.start()
        await asyncio.sleep(1)
        assert life(world, wish.id) == ["executing", "cancelled"]
        assert executor.began == [wish.id]

    simulate(story, NOTHING)


def test_an_executor_that_cancels_itself_has_failed() -> None:
    async def cancelling(_event: Event) -> None:
        raise asyncio.CancelledError

    async def story(world: World) -> None:
        executor = with_note(world, cancelling, safety=Safety.AT_MOST_ONCE)
        await world.start()
        wish = await world.ask(NOTE)
        await asyncio.sleep(30)
        assert life(world, wish.id) == ["executing", "failed"]
        assert executor.began == [wish.id]

    simulate(story, NOTHING)


def test_a_result_that_cannot_be_recorded_settles_the_effect_all_the_same() -> None:
    async def odd(_event: Event) -> None:
        raise PulseError("half a character: \ud800")

    async def story(world: World) -> None:
        with_note(world, odd)
        world.executors["note"].outcome = lambda _effect: asyncio.sleep(0, {"x": object()})
        await world.start()
        first = await world.ask(NOTE)
        await asyncio.sleep(1)
        world.executors["note"].deed = MemoryExecutor("x").deed
        second = await world.ask(NOTE)
        await asyncio.sleep(1)
        assert [life(world, wish.id)[-1] for wish in (first, second)] == ["failed", "failed"]

    simulate(story, NOTHING)


def test_a_rule_whose_effects_are_refused_spends_its_budget_by_them() -> None:
    async def story(world: World) -> None:
        with_note(world)
        daemon = await world.start()

        async def submitted(*effects: Effect) -> int:
            return len(await daemon.executor.submit(effects, daemon.gate))

        def of(rule: str, action: str, n: int, **more: Any) -> Effect:
            return Effect(action=action, key=f"{rule}-{action}-{n}", rule=rule, tick=1, **more)

        assert await submitted(*(of("bad", "nothing", n) for n in range(10_000))) == 0
        assert await submitted(of("bad", "note", 1), of("good", "note", 1)) == 1
        assert await submitted(of("bad", "note", 2, survival=True)) == 1
        await asyncio.sleep(61)
        assert await submitted(of("bad", "note", 3)) == 1
        await asyncio.sleep(1)
        assert "no executor 'nothing'" in world.events("error", subject="rule:bad")[0].data

    simulate(story, NOTHING)


def test_a_few_effects_of_rules_are_judged_at_a_time_and_the_loop_turns_in_between() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        refused, at_each_turn = list[str](), [0]
        daemon.executor.failed = lambda whose, words, commit: refused.append(words)

        async def turn() -> None:
            while True:
                at_each_turn.append(len(refused))
                await asyncio.sleep(0)

        turning = asyncio.create_task(turn())
        wishes = [Effect(action="nothing", key=f"n-{n}", rule="bad", tick=1) for n in range(100)]
        assert await daemon.executor.submit(wishes, daemon.gate) == ()
        turning.cancel()
        assert len(refused) == 100
        assert max(late - early for early, late in pairwise([*at_each_turn, 100])) <= 5

    simulate(story, NOTHING)


def test_what_was_judged_by_an_engine_that_another_replaces_meanwhile_holds_no_slot() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        daemon.executors.register({"beep": MemoryExecutor("beep")})
        await world.ask(Effect(action="beep", key="b"))
        await asyncio.sleep(1)
        of_rule = {"rule": "mine", "tick": 1}
        wishes = [NOTE, *(Effect(action="beep", key=key) for key in "bcdefgh")]
        signed = [one.model_copy(update=of_rule) for one in wishes]
        submitting = asyncio.create_task(daemon.executor.submit(signed, daemon.gate))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        daemon.executors.register({})
        assert len(await submitting) >= 5
        await asyncio.sleep(2)
        assert str(daemon.executor.slots) == ""
        assert not daemon.parts.view().effects.open

    simulate(story, NOTHING)


def test_what_a_rule_says_its_effect_follows_from_is_the_cause_of_the_event() -> None:
    async def story(world: World) -> None:
        with_note(world)
        daemon = await world.start()
        effect = Effect(action="note", key="mine", rule="mine", tick=1, because="event-of-mine")
        assert await daemon.executor.submit([effect], daemon.gate) == ["mine"]
        (event,) = world.events("effect", subject="mine")
        assert (event.cause, "because" in event.data) == ("event-of-mine", False)

    simulate(story, NOTHING)


def test_what_rules_have_open_is_bounded_in_number_and_in_bytes_and_survival_and_people_are_not() -> None:
    async def story(world: World) -> None:
        with_note(world, lambda _event: asyncio.sleep(1_000))
        daemon = await world.start()

        async def submitted(*effects: Effect) -> int:
            return len(await daemon.executor.submit(effects, daemon.gate))

        def of(rule: str, n: int, size: int = 0, **more: Any) -> Effect:
            params = {"text": "x" * size}
            return Effect(action="note", key=f"{rule}-{n}", rule=rule, tick=1, params=params, **more)

        assert await submitted(*(of("large", n, 60_000) for n in range(4))) == 3
        assert await submitted(*(of("many", n) for n in range(MOST))) == MOST - 3
        assert await submitted(*(of("late", n) for n in range(3))) == 0
        assert await submitted(*(of("kept", n, survival=True) for n in range(3))) == 3
        await world.ask(NOTE)
        assert "give a path" in world.events("error", subject="rule:large")[0].data
        assert f"{MOST} effects of rules are open" in world.events("error", subject="rule:late")[0].data
        # What is open already is asked for again without being refused.
        refused = len(world.events("error", subject="rule:many"))
        assert await submitted(of("many", 0)) == 0
        assert len(world.events("error", subject="rule:many")) == refused

    simulate(story, {**NOTHING, "budget": {"actions_per_minute": 0}})


def test_what_effects_of_rules_record_is_bounded_in_the_long_run_and_what_survival_and_people_do_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(effect_tasks, "BURST", 100_000)

    async def story(world: World) -> None:
        with_note(world)
        world.executors["note"].outcome = lambda _effect: asyncio.sleep(0, {"said": "x" * 40_000})
        daemon = await world.start()

        async def done(key: str, rule: str = "large", size: int = 0, **more: Any) -> str:
            effect = Effect(action="note", key=key, rule=rule, tick=1, params={"text": "x" * size}, **more)
            await daemon.executor.submit([effect], daemon.gate)
            await asyncio.sleep(1)
            (wish,) = world.events("effect", subject=key)
            (acked,) = world.events("effect-acked", subject=wish.id)
            return str(json.loads(acked.data)["result"].get("left_out", ""))

        assert [await done(f"{n}") for n in range(2)] == ["", ""]
        assert "not kept: what your rules' effects record" in await done("full")
        assert await done("own", survival=True) == ""
        by_people = await world.ask(NOTE)
        await asyncio.sleep(1)
        assert "said" in world.events("effect-acked", subject=by_people.id)[0].data
        more = Effect(action="note", key="more", rule="large", tick=1, params={"text": "x" * 90_000})
        assert not await daemon.executor.submit([more], daemon.gate)
        await asyncio.sleep(1)
        assert "give a path" in world.events("error", subject="rule:large")[-1].data
        world.executors["note"].outcome = lambda _effect: asyncio.sleep(0, {"sent_to": ["somebody"]})
        assert await done("small") == ""
        await asyncio.sleep(60)
        assert await done("later", size=30_000) == ""

    simulate(story, {**NOTHING, "budget": {"actions_per_minute": 0}})


def test_of_a_result_without_room_what_pulse_goes_on_from_is_kept_and_what_is_large_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whom a notice has reached is not told again, and what a restart has begun is known by the next daemon."""
    monkeypatch.setattr(effect_tasks, "BURST", 0)

    async def story(world: World) -> None:
        async def partly(_event: Event) -> None:
            raise PartlyDone("not all: " + "no answer; " * 200, {"sent_to": ["ada"]})

        note = with_note(world, partly, retries=1)
        daemon = await world.start()
        wish = Effect(action="note", key="large", rule="mine", tick=1)
        await daemon.executor.submit([wish], daemon.gate)
        await asyncio.sleep(60)
        assert told(world, "effect-failed")["result"] == {"sent_to": ["ada"]}
        result = {"leftovers": [*range(9_000)], "pid": 7, "started": 70}
        note.deed = at_once
        world.executors["note"].outcome = lambda _effect: asyncio.sleep(0, result)
        await daemon.executor.submit([wish], daemon.gate)
        await asyncio.sleep(1)
        acked = told(world, "effect-acked")["result"]
        assert (acked.pop("left_out").split()[:2], acked) == (["52,905", "bytes,"], {"pid": 7, "started": 70})

    simulate(story, {**NOTHING, "budget": {"actions_per_minute": 0}})


def test_what_is_not_recorded_costs_nothing_of_what_rules_may_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the log can't be written, the same is wished again and again."""
    monkeypatch.setattr(effect_tasks, "BURST", 9_000)

    async def story(world: World) -> None:
        with_note(world)
        daemon = await world.start()

        def large(key: str) -> Effect:
            return Effect(action="note", key=key, rule="mine", tick=1, params={"text": "x" * 4_000})

        assert await daemon.executor.submit([large("k"), large("k")], daemon.gate) == ["k"]
        assert await daemon.executor.submit([large("l")], daemon.gate) == ["l"]
        assert not await daemon.executor.submit([large("m")], daemon.gate), "what was recorded is counted"

    simulate(story, {**NOTHING, "budget": {"actions_per_minute": 0}})
