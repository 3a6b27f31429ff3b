"""Who may have what recorded: every refusal of the gate, through the daemon's own desk."""

import asyncio
from typing import Any

import pytest

from pulse_core.daemon import Caller, RequestHandler
from pulse_core.model.errors import PulseError, Refused, UnknownName
from pulse_core.model.payload import KINDS, Role
from tests.simulation.world import World, simulate

ONE = {"process": [{"name": "gateway", "start": ["gateway"]}]}
OWNER = Caller(Role.PERSON, "ada")
AGENT = Caller(Role.AGENT, "agent")
NOBODY = Caller(Role.NOBODY, "stranger")
WISH = {"kind": "effect", "data": {"action": "note", "key": "k"}}


async def asked(request_handler: RequestHandler, caller: Caller, **request: Any) -> Any:
    answers = [answer async for answer in request_handler.answer(caller, request)]
    assert len(answers) == 1
    return answers.pop()


def refused(caller: Caller, error: type[PulseError], words: str, *drafts: Any, op: str = "append") -> None:
    """The request is refused with these words, and nothing is recorded."""

    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(1)
        rows = len(world.log.events)
        with pytest.raises(error, match=words):
            await asked(daemon.request_handler, caller, op=op, drafts=list(drafts))
        assert len(world.log.events) == rows

    simulate(story, ONE)


def test_an_owner_may_wish_and_is_named_as_actor() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        answer = await asked(daemon.request_handler, OWNER, op="append", drafts=[WISH])
        assert (answer["events"][0]["actor"], answer["events"][0]["existing"]) == ("ada", False)
        await asyncio.sleep(1)
        assert world.executors["note"].done == [answer["events"][0]["id"]]

    simulate(story, ONE)


def test_a_key_that_is_open_answers_with_its_effect() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asked(daemon.request_handler, OWNER, op="append", drafts=[{"kind": "paused"}])
        first = await asked(daemon.request_handler, OWNER, op="append", drafts=[WISH])
        again = await asked(daemon.request_handler, OWNER, op="append", drafts=[WISH])
        assert again["events"][0]["id"] == first["events"][0]["id"]
        assert again["events"][0]["existing"]
        assert len(world.events("effect", subject="k")) == 1

    simulate(story, ONE)


def test_two_callers_with_one_key_at_the_same_time_get_one_effect() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asked(daemon.request_handler, OWNER, op="append", drafts=[{"kind": "paused"}])

        async def slow() -> None:
            await asyncio.sleep(0.01)

        world.log.commit = slow
        both = await asyncio.gather(
            *(asked(daemon.request_handler, OWNER, op="append", drafts=[WISH]) for _ in range(2))
        )
        assert len({answer["events"][0]["id"] for answer in both}) == 1
        assert len(world.events("effect", subject="k")) == 1

    simulate(story, ONE)


def test_the_same_draft_with_the_same_id_is_recorded_once() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        draft = {**WISH, "id": "01a20053-73c7-7546-996e-8d2deeafccbd"}
        await asked(daemon.request_handler, OWNER, op="append", drafts=[draft])
        await asyncio.sleep(5)
        await asked(daemon.request_handler, OWNER, op="append", drafts=[draft])
        assert len(world.events("effect", subject="k")) == 1

    simulate(story, ONE)


@pytest.mark.parametrize("kind", sorted(kind for kind, model in KINDS.items() if model.by is Role.DAEMON))
def test_what_only_the_daemon_can_know_is_not_taken_from_a_person(kind: str) -> None:
    required = {
        "daemon-started": {"pid": 1, "version": "1"},
        "daemon-stopped": {"pid": 1, "reason": "x"},
        "safe-mode-entered": {"crashes": 3, "left_out": []},
        "settings-loaded": {"digest": "x"},
        "settings-refused": {"faults": []},
        "agent-set-aside": {"why": "x"},
        "agent-run-started": {"run": "x", "agent": "a", "token": 1, "pid": 1, "started": 1},
        "agent-run-stop-requested": {"run": "x", "why": "x"},
        "agent-run-ended": {"run": "x"},
        "agent-run-cleaned": {"run": "x"},
        "agent-run-counted": {"run": "x", "tokens": 1},
        "agent-run-printed": {"text": "x"},
        "agent-run-paused": {"run": "x", "why": "x"},
        "task-pull-request-opened": {"url": "x"},
        "workspace-made": {"path": "x", "branch": "x"},
        "workspace-kept": {"path": "x", "why": "x"},
        "task-result-refused": {"token": 1, "said": "task-acked"},
        "log-verified": {"rows": 1, "took_ms": 1},
        "anchor-places": {"places": []},
        "damage-accepted": {"what": "x", "kept_at": "x"},
        "error": {"message": "x"},
        "process-up": {"pid": 1, "started": 1, "evidence": "x"},
        "process-died": {"pid": 1, "evidence": "x", "healthy": True},
        "restart-delayed": {"held_by": "x", "since": 1, "held_us": 1},
        "answer-delayed": {"held_by": "x", "since": 1, "held_us": 1},
        "process-stopped": {"evidence": "x", "expires_us": 1},
        "effect-attempt-failed": {"attempt": 1, "error": "x", "retry_us": 1},
        "effect-acked": {"took_us": 1},
        "effect-failed": {"error": "x"},
        "effect-unknown": {"why": "x"},
        "effect-cancelled": {"why": "x"},
        "condition-raised": {"evidence": "x"},
        "condition-cleared": {"evidence": "x"},
        "log-matched": {"severity": "error", "lines": ["x"], "count": 1},
        "promote": {"previous": "x", "watch_us": 1},
        "rollback": {"rejected": "x"},
        "promote-refused": {"why": "x"},
        "rule-quarantined": {"commit": "x", "why": "x"},
        "work-shed": {"level": 1},
        "log-restored": {"source": "x", "made_at": 1, "rows": 1},
    }
    refused(
        OWNER, Refused, "by the daemon only", {"kind": kind, "data": required.get(kind, {}), "subject": "x"}
    )


def test_an_agent_may_not_wish_effects() -> None:
    refused(AGENT, Refused, "by the owner or root only, not by agents", WISH)


def test_a_stranger_may_not_even_ask() -> None:
    refused(NOBODY, Refused, "you may not talk", op="status")


@pytest.mark.parametrize(
    ("draft", "error", "words"),
    [
        ({"kind": "efect", "data": {}}, UnknownName, "did you mean 'effect'"),
        ({"kind": "effect", "data": {"action": "noet", "key": "k"}}, UnknownName, "did you mean 'note'"),
        ({"kind": "effect", "data": {"action": "note"}}, Refused, "key: Field required"),
        ({"kind": "effect", "data": {"action": "note", "key": ""}}, Refused, "key: String should have"),
        (
            {"kind": "effect", "data": {"action": "note", "key": "k", "tick": 3}},
            Refused,
            "only a rule's effect",
        ),
        (
            {"kind": "effect", "data": {"action": "note", "key": "k", "survival": True}},
            Refused,
            "only a rule's",
        ),
        ({**WISH, "id": "my-own"}, Refused, "is no event id"),
        ({**WISH, "cause": 7}, Refused, "cause an event id"),
        ({**WISH, "cause": "because"}, Refused, "'because' is no event id"),
        (
            {"kind": "effect", "data": {"action": "note", "key": "k\nforged"}},
            Refused,
            "key: String should match",
        ),
        (
            {"kind": "effect", "data": {"action": "no\x7fte", "key": "k"}},
            Refused,
            "action: String should match",
        ),
        ({**WISH, "data": []}, Refused, "data is an object"),
        (
            {"kind": "process-stop-requested", "subject": "gatway", "data": {"expires_us": 1}},
            UnknownName,
            "gateway",
        ),
        (
            {"kind": "process-stop-requested", "subject": "gateway", "data": {"expires_us": 0}},
            Refused,
            "greater",
        ),
        ({"kind": "effect-cancel-requested", "subject": "nothing"}, Refused, "no open effect"),
    ],
)
def test_a_draft_that_makes_no_sense_is_refused_with_what_would(
    draft: Any, error: type[PulseError], words: str
) -> None:
    refused(OWNER, error, words, draft)


def test_a_key_wished_twice_at_once_is_refused() -> None:
    refused(OWNER, Refused, "wished twice at once", WISH, WISH)


@pytest.mark.parametrize("drafts", [[], "text", [1], None])
def test_an_append_of_nothing_is_refused(drafts: Any) -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        with pytest.raises(Refused, match="a list of 1 to"):
            await asked(daemon.request_handler, OWNER, op="append", drafts=drafts)

    simulate(story, ONE)


def test_drafts_are_recorded_together_or_not_at_all() -> None:
    refused(OWNER, UnknownName, "no executor", WISH, {"kind": "effect", "data": {"action": "x", "key": "y"}})


def test_an_unknown_operation_is_refused_with_the_ones_there_are() -> None:
    refused(OWNER, UnknownName, "there are: append, follow, state, status", op="destroy")


def test_a_follower_hears_what_was_and_what_comes() -> None:
    async def story(world: World) -> None:
        daemon = await world.start()
        await asyncio.sleep(1)
        heard: list[str] = []

        async def follow() -> None:
            async for answer in daemon.request_handler.answer(
                AGENT, {"op": "follow", "since": 0, "kinds": ["paused"]}
            ):
                heard.append(answer["event"]["kind"])

        following = asyncio.create_task(follow())
        await asked(daemon.request_handler, OWNER, op="append", drafts=[{"kind": "paused"}])
        await asyncio.sleep(1)
        await asked(daemon.request_handler, OWNER, op="append", drafts=[{"kind": "paused"}])
        await asyncio.sleep(1)
        following.cancel()
        assert heard == ["paused", "paused"]

    simulate(story, ONE)
