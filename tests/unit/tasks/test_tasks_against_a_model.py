"""Whatever happens to tasks, and whenever the daemon dies, they stand as a simple model says: none is lost or done twice."""

import asyncio
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulse_core.model.errors import Refused
from pulse_core.model.payload import Role
from tests.simulation.world import World
from tests.unit.tasks.test_tasks_in_a_daemon import ONE, OTHER, begun, claim, say, task, told

LEASE, ATTEMPTS = 60, 2
DONE_BY_HOLDER: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ack": ("task-acked", "acked", {}),
    "release": ("task-released", "pending", {}),
    "fail": ("task-failed", "failed", {"error": "no"}),
    "try again": ("task-failed", "pending", {"error": "no", "retry_us": 0}),
    "give up": ("task-given-up", "given-up", {}),
}
DONE_BY_PERSON = {
    "close": ("task-closed", {"pending", "acked", "failed", "given-up"}, "closed"),
    "retry": ("task-retried", {"acked", "failed", "given-up"}, "pending"),
}
DEED = st.tuples(
    st.sampled_from((*DONE_BY_HOLDER, *DONE_BY_PERSON, "claim", "claim", "beat", "late", "wait", "die")),
    st.sampled_from((ONE, OTHER)),
)


@dataclass
class Model:
    """A task in four words. left: seconds of its lease."""

    status: str = "pending"
    token: int = 0
    attempts: int = 0
    left: int = 0

    def over(self, status: str) -> None:
        """The claim is over, or there is none."""
        self.status, self.token = status, 0


async def do(world: World, deed: str, id_: str, model: Model) -> None:
    """Try this, and move the model if it was not refused. Raises Refused."""
    if deed == "claim":
        token = await claim(world, "ada", id_, LEASE * 1_000_000)
        if model.status == "executing":
            assert token == model.token  # it is told again what it has
            return
        assert model.status == "pending"
        model.status, model.token, model.left = "executing", token, LEASE
        model.attempts += 1
    elif deed == "late":
        await say(world, "task-acked", id_, Role.AGENT, token=(model.token or 1_000) - 1, result="late")
        raise AssertionError("a result under an old token was taken")
    elif deed == "beat":
        await say(world, "task-heartbeat", id_, Role.AGENT, token=model.token or 1)
        model.left = LEASE
    elif deed in DONE_BY_HOLDER:
        kind, status, data = DONE_BY_HOLDER[deed]
        await say(world, kind, id_, Role.AGENT, token=model.token or 1, **data)
        assert model.status == "executing"
        model.over(status)
    else:
        kind, statuses, status = DONE_BY_PERSON[deed]
        await say(world, kind, id_)
        assert model.status in statuses
        model.over(status)
        if deed == "retry":
            model.attempts = 0


def is_legal(deed: str, model: Model) -> bool:
    """Whether it should be taken."""
    if deed == "claim":
        return model.status == "pending"
    if deed in DONE_BY_PERSON:
        return model.status in DONE_BY_PERSON[deed][1]
    return deed != "late" and model.status == "executing"


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(DEED, max_size=25))
def test_tasks_stand_as_a_simple_model_says(deeds: list[tuple[str, str]]) -> None:
    async def story(world: World) -> None:
        await begun(world, review=True)
        await say(world, "task-created", OTHER, project="app", title="another one")
        models = {ONE: Model(), OTHER: Model()}
        for deed, id_ in deeds:
            if deed == "die":
                await world.crash()
                await world.start()
            elif deed == "wait":
                await asyncio.sleep(LEASE / 2 + 1)
                for model in models.values():
                    model.left -= LEASE // 2 + 1
                    if model.status == "executing" and model.left <= 0:
                        model.over("failed" if model.attempts >= ATTEMPTS else "pending")
            else:
                try:
                    await do(world, deed, id_, models[id_])
                except Refused:
                    assert not is_legal(deed, models[id_])
            for one, model in models.items():
                found = task(world, one)
                assert (found.status, found.token, found.attempts) == (
                    model.status,
                    model.token,
                    model.attempts,
                )
        claims = len(world.events("task-executing"))
        ended = ("task-acked", "task-released", "task-failed", "task-given-up")
        held = sum(model.status == "executing" for model in models.values())
        assert claims == len(world.events(*ended)) + held

    told(story, tasks={"attempts": ATTEMPTS})
