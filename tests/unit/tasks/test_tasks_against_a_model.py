"""Whatever happens to tasks, and whenever the daemon dies, they stand as a simple model says: none is lost or done twice."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulse_core.model.errors import PulseError, Refused
from pulse_core.model.payload import Role
from pulse_core.tasks.task import TaskState
from tests.long_form import sample
from tests.simulation.world import World
from tests.unit.tasks.test_tasks_in_a_daemon import ONE, OTHER, begun, say, task, told

LEASE, ATTEMPTS = 60, 2
OPEN = frozenset({"pending", "assigned", "executing", "acked", "failed", "blocked"})


@dataclass(frozen=True)
class Model:
    """A task in a few words. home: the column to which it goes back; beat: seconds at which its lease began."""

    status: str = "pending"
    agent: str = ""
    attempts: int = 0
    column: str = "Ready"
    home: str = ""
    blockers: tuple[str, ...] = ()
    beat: float = 0.0

    def moved(self, status: str, **news: Any) -> "Model":
        """In this status, and if it is another one, in the column that it wants."""
        if status == self.status:
            return replace(self, **news)
        column = {"executing": "In progress", "acked": "Review", "closed": "Done"}.get(status, self.column)
        home = (self.home or self.column) if column != self.column else self.home
        if status == "pending":
            column, home, news = self.home or self.column, "", {"agent": "", **news}
        return replace(self, **{"status": status, "column": column, "home": home, **news})


def seen(found: TaskState, now: float) -> Model:
    """What the model would say of a task as it is."""
    agent = found.agent if found.status in ("assigned", "executing") else ""
    assert (found.token > 0, found.beat is not None) == (found.status == "executing",) * 2
    given: dict[str, Any] = {"agent": agent, "home": found.claimed_from, "beat": now if found.token else 0.0}
    return Model(
        str(found.status), attempts=found.attempts, column=found.column, blockers=found.blockers, **given
    )


BY_HOLDER: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "ack": ("task-acked", "acked", {}),
    "release": ("task-released", "pending", {}),
    "fail": ("task-failed", "failed", {"error": "no"}),
    "try again": ("task-failed", "pending", {"error": "no", "retry_us": 0}),
    "give up": ("task-given-up", "given-up", {}),
    "beat": ("task-heartbeat", "executing", {}),
}
BY_PERSON: Mapping[str, tuple[str, frozenset[str], str, dict[str, Any]]] = {
    "close": ("task-closed", (OPEN - {"executing"}) | {"given-up"}, "closed", {}),
    "retry": (
        "task-retried",
        frozenset({"pending", "acked", "failed", "blocked", "given-up"}),
        "pending",
        {},
    ),
    "assign ada": ("task-assigned", frozenset({"pending", "assigned"}), "assigned", {"agent": "ada"}),
    "assign bob": ("task-assigned", frozenset({"pending", "assigned"}), "assigned", {"agent": "bob"}),
    "block": ("task-blocked", frozenset({"pending", "assigned", "executing"}), "blocked", {"why": "so"}),
    "move": ("task-moved", OPEN, "", {"column": "Test"}),
    "move back": ("task-moved", OPEN, "", {"column": "Ready"}),
    "wait for": ("task-blockers-set", OPEN, "", {}),
    "wait for none": ("task-blockers-set", OPEN, "", {"blockers": []}),
}
DEED = st.tuples(
    st.sampled_from((*BY_HOLDER, *BY_PERSON, "claim", "claim", "claim", "late", "pass time")),
    st.sampled_from((ONE, OTHER)),
    st.sampled_from(("", "", "after", "while")),  # when the daemon dies
)


def expected(deed: str, id_: str, models: Mapping[str, Model], now: float) -> Model | None:
    """The task after this; None if it is refused."""
    model, other = models[id_], OTHER if id_ == ONE else ONE
    if deed == "claim":
        is_waiting = any(models[one].status != "closed" for one in model.blockers)
        is_fit = model.status == "pending" and model.column in ("Ready", "In progress")
        if is_waiting or not (is_fit or (model.status, model.agent) == ("assigned", "ada")):
            return None
        return model.moved("executing", agent="ada", attempts=model.attempts + 1, beat=now)
    if deed in BY_HOLDER:
        status = BY_HOLDER[deed][1]
        beat = now if deed == "beat" else 0.0
        return model.moved(status, agent="ada" if deed == "beat" else "", beat=beat) if model.beat else None
    if deed == "late":
        return None
    _, statuses, status, data = BY_PERSON[deed]
    if model.status not in statuses:
        return None
    if deed == "wait for":
        is_circle = models[other].status != "closed" and id_ in models[other].blockers
        return None if is_circle else replace(model, blockers=(other,))
    if deed == "wait for none":
        return replace(model, blockers=())
    if deed.startswith("move"):
        return replace(model, column=data["column"], home="")
    return model.moved(
        status, agent=data.get("agent", ""), beat=0.0, attempts=0 if deed == "retry" else model.attempts
    )


async def do(world: World, deed: str, id_: str) -> None:
    """Say this through the front door. Raises Refused."""
    token = task(world, id_).token
    if deed == "claim":
        await say(world, "task-executing", id_, Role.AGENT, agent="ada", lease_us=LEASE * 1_000_000)
    elif deed == "late":
        await say(world, "task-acked", id_, Role.AGENT, token=(token or 1_000) - 1, result="late")
    elif deed in BY_HOLDER:
        kind, _, data = BY_HOLDER[deed]
        await say(world, kind, id_, Role.AGENT, token=token or 1, **data)
    else:
        kind, _, _, data = BY_PERSON[deed]
        blockers: dict[str, Any] = {"blockers": [OTHER if id_ == ONE else ONE]} if deed == "wait for" else {}
        await say(world, kind, id_, **data, **blockers)


def expired(model: Model, now: float) -> Model:
    """The task once its lease has ended, if it has."""
    if not model.beat or now - model.beat < LEASE:
        return model
    return model.moved("failed" if model.attempts >= ATTEMPTS else "pending", agent="", beat=0.0)


@settings(max_examples=sample(25, 250), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(DEED, max_size=25))
def test_tasks_stand_as_a_simple_model_says(deeds: list[tuple[str, str, str]]) -> None:
    async def story(world: World) -> None:
        await begun(world, review=True)
        await say(world, "task-created", OTHER, project="app", title="another one")
        models, loop = {ONE: Model(), OTHER: Model()}, asyncio.get_running_loop()
        for deed, id_, death in deeds:
            now, was = loop.time(), task(world, id_)
            after = None if deed == "pass time" else expected(deed, id_, models, now)
            if deed == "pass time":
                await asyncio.sleep(LEASE / 2 + 1)
            elif death == "while":
                saying = asyncio.ensure_future(do(world, deed, id_))
                await asyncio.sleep(0)
                await world.crash()
                with suppress(PulseError, asyncio.CancelledError):
                    await saying
            elif after or (deed == "claim" and models[id_].status == "executing"):
                await do(world, deed, id_)  # whoever holds it is told again of the claim
                models[id_] = after or models[id_]
            else:
                with pytest.raises(Refused):
                    await do(world, deed, id_)
            if death == "after" or (death and deed == "pass time"):  # while time passes nothing is said
                await world.crash()
            if death:
                await world.start()
                await asyncio.sleep(0.5)
            models = {one: expired(model, loop.time()) for one, model in models.items()}
            if death == "while" and after:  # it was recorded, or it was not
                found = task(world, id_)
                is_recorded = found.beat != was.beat if deed == "beat" else seen(found, after.beat) == after
                models[id_] = after if is_recorded else models[id_]
            for one, model in models.items():
                assert seen(task(world, one), model.beat) == model
        for id_ in (ONE, OTHER):
            is_held = False
            for event in world.events(subject=id_):
                if event.kind == "task-executing":
                    assert not is_held
                    is_held = True
                elif event.kind in (
                    "task-acked",
                    "task-released",
                    "task-failed",
                    "task-given-up",
                    "task-blocked",
                ):
                    is_held = False
            assert is_held == (models[id_].status == "executing")

    told(story, tasks={"attempts": ATTEMPTS})
