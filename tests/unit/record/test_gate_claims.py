"""Effects exclude each other by their keys, and by what their actions declare; the gate sees to it, and nobody else."""

import asyncio
from collections.abc import Sequence

import pytest

from pulse_adapters.memory.clock import VirtualClock
from pulse_adapters.memory.executors import MemoryExecutor
from pulse_adapters.memory.log import MemoryLog
from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import Effect, EffectCancelled, EffectExecuting
from pulse_core.model.payload import Role
from pulse_core.record.gate import Gate, RecordedDraft
from pulse_core.record.view import View
from pulse_core.settings.settings import Settings

RESTART = "restart-process"


class Scene:
    """A gate before a log in memory."""

    def __init__(self) -> None:
        self.log, view = MemoryLog(VirtualClock(lambda: 0.0)), View()
        self.log.listen(view.on_events)
        names = (RESTART, "stop-process", "note", "notify")
        executors = {action: MemoryExecutor(action) for action in names}
        self.gate = Gate(self.log, view, Settings, executors, self.log.clock)

    async def by_hand(self, *effects: Effect) -> Sequence[RecordedDraft]:
        return await self.gate.append(Role.PERSON, "ada", [Draft(effect) for effect in effects])

    async def by_rules(self, *effects: Effect) -> list[str]:
        """The keys of those that were recorded."""
        news = self.gate.unclaimed([Draft(effect, subject=effect.key) for effect in effects])
        return [event.subject for event in await self.gate.record(news)]


def restart(key: str, process: str = "gateway") -> Effect:
    return Effect(action=RESTART, key=key, params={"process": process})


async def test_rules_restart_one_process_once_at_a_time_whatever_the_keys() -> None:
    scene = Scene()
    four = [restart(f"k{number}") for number in range(4)]
    assert await scene.by_rules(*four, restart("other", "worker")) == ["k0", "other"]
    assert await scene.by_rules(*four) == []
    opened: Event = scene.log.events[0]
    await scene.log.append(Draft(EffectCancelled(why="no"), subject=opened.id))
    assert await scene.by_rules(*four) == ["k0"]


async def test_an_effect_that_is_asked_for_again_by_its_id_is_the_one_that_was_recorded() -> None:
    scene, again = Scene(), [Draft(restart("mine"), id="01900000-0000-7000-8000-000000000001")]
    first = await scene.gate.append(Role.PERSON, "ada", again)
    assert [one.event for one in await scene.gate.append(Role.PERSON, "ada", again)] == [first[0].event]
    assert len(scene.log.events) == 1


async def test_a_person_is_told_which_restart_is_under_way() -> None:
    scene = Scene()
    await scene.by_rules(restart("theirs"))
    with pytest.raises(Refused, match="restart-process of 'gateway' is under way already: effect "):
        await scene.by_hand(restart("mine"))
    await scene.by_hand(restart("mine", "worker"))


async def test_one_restart_is_under_way_while_its_commit_is() -> None:
    scene = Scene()
    both = await asyncio.gather(
        scene.by_hand(restart("one")), scene.by_hand(restart("two")), return_exceptions=True
    )
    assert [isinstance(one, Refused) for one in both] == [False, True]


async def test_two_restarts_of_one_process_are_not_wished_together() -> None:
    scene = Scene()
    with pytest.raises(Refused, match="restart-process of 'gateway' is wished twice at once"):
        await scene.by_hand(restart("one"), restart("two"))
    assert scene.log.events == []


async def test_what_declares_nothing_is_excluded_by_its_key_alone() -> None:
    scene = Scene()
    notes = [Effect(action="note", key=key, params={"process": "gateway"}) for key in ("a", "b", "a")]
    assert await scene.by_rules(restart("k"), *notes) == ["k", "a", "b"]


async def test_a_newer_notice_takes_the_place_of_one_that_waits_and_one_that_is_sent_again_does_not() -> None:
    scene = Scene()
    notice = Effect(action="notify", key="notify:x", params={"title": "x"})
    first = Draft(notice, id="id-of-a-client-1")
    for draft in (first, Draft(notice, id="id-of-a-client-2"), first):
        await scene.gate.append(Role.PERSON, "ada", [draft])
    assert [event.kind for event in scene.log.events] == ["effect", "effect-cancelled", "effect"]
    assert scene.log.events[1].subject == first.id
    await scene.log.append(Draft(EffectExecuting(), subject="id-of-a-client-2"))
    assert (await scene.by_hand(notice))[0].existing
    other = Effect(action="notify", key="of no topic", params={"title": "x"})
    await scene.by_hand(other)
    assert (await scene.by_hand(other))[0].existing


async def test_of_notices_that_take_the_place_of_one_at_once_each_takes_that_of_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene()
    has = scene.log.has

    async def after_a_while(id_: str) -> bool:
        await asyncio.sleep(0)  # as a log on disk is asked
        return await has(id_)

    monkeypatch.setattr(scene.log, "has", after_a_while)
    notice = Effect(action="notify", key="notify:x", params={"title": "x"})
    await scene.gate.append(Role.PERSON, "ada", [Draft(notice, id="first")])
    both = (scene.gate.append(Role.PERSON, "ada", [Draft(notice, id=id_)]) for id_ in ("second", "third"))
    await asyncio.gather(*both)
    assert [event.subject for event in scene.log.events if event.kind == "effect-cancelled"] == [
        "first",
        "second",
    ]
    assert list(scene.gate.current_state().effects.open) == ["third"]
