"""What is refused at the door: each event in each status, as the table of moves has it, whoever says it."""

from itertools import product

import pytest

from pulse_core.capability import RecordedBefore
from pulse_core.composition import FOLD, Settings
from pulse_core.model.errors import Refused
from pulse_core.model.event import Draft
from pulse_core.model.payload import Role, parse
from pulse_core.tasks.admission import check_move
from pulse_core.tasks.task import COMMANDS, HELD_BY_TOKEN, MOVES, Status
from tests.unit.tasks.task_events import ONE, TaskLog
from tests.unit.tasks.test_task_life import OF_TASKS, data_for, in_status

SAID = [kind for kind in OF_TASKS if kind != "task-result-refused"]


def refusal(log: TaskLog, kind: str, role: Role, token: int | None) -> Refused | None:
    """Why this is not taken."""
    data = {**data_for(kind, log), **({"token": token} if kind in HELD_BY_TOKEN else {})}
    try:
        check_move(Draft(parse(kind, data), ONE), role, FOLD(FOLD.start, log.events), Settings())
    except Refused as refused:
        return refused
    return None


@pytest.mark.parametrize("status", Status)
def test_every_event_in_every_status_is_taken_or_refused_with_what_is_possible(status: Status) -> None:
    for kind, role in product(SAID, (Role.AGENT, Role.PERSON, Role.DAEMON)):
        log = in_status(status)
        token = log.task().token
        found = refusal(log, kind, role, token or (1 if "token" in data_for(kind, log) else None))
        if kind == "task-executing" and status is Status.EXECUTING and role < Role.DAEMON:
            assert isinstance(found, RecordedBefore), role  # its holder is told of its claim again
        elif kind in MOVES[status]:
            assert found is None, (kind, role)
            log.say(kind, **data_for(kind, log))
            assert log.task().status in (MOVES[status][kind] or status, Status.FAILED), (kind, role)
        else:
            possible = sorted(COMMANDS[one] for one in MOVES[status] if one in COMMANDS)
            assert str(found).endswith(
                f"upulse task {', '.join(possible)}" if possible else "nothing more can happen to it"
            ), (kind, role)


@pytest.mark.parametrize("status", Status)
def test_an_agent_needs_the_token_of_the_claim_and_a_person_does_not(status: Status) -> None:
    for kind in sorted(HELD_BY_TOKEN):
        log = in_status(status)
        token = log.task().token
        for role in (Role.AGENT, Role.PERSON):
            late = refusal(log, kind, role, token + 7)
            assert f"the claim {token + 7} of {ONE} is over" in str(late), (kind, role)
        if "token" in data_for(kind, log) and kind != "task-acked":
            continue  # it can't be said without one
        assert (refusal(log, kind, Role.PERSON, None) is None) == (kind in MOVES[status]), kind
        by_agent = refusal(log, kind, Role.AGENT, None)
        if status is Status.EXECUTING:
            assert "is held by ada; say the token of the claim" in str(by_agent), kind
        else:
            assert (by_agent is None) == (kind in MOVES[status]), kind
