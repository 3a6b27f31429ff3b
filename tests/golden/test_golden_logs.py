"""What an earlier release recorded means the same to this one."""

import json

import pytest

from pulse_core.model.event import Event
from pulse_core.model.payload import KINDS
from tests.golden.make import HERE, folded

LOGS = sorted(HERE.glob("*.events.jsonl"))


def read(name: str) -> list[Event]:
    return [Event(*json.loads(line)) for line in (HERE / name).read_text().splitlines()]


@pytest.mark.parametrize("name", [log.name for log in LOGS])
def test_a_golden_log_folds_to_the_state_it_was_kept_with(name: str) -> None:
    kept = json.loads((HERE / name.replace(".events.jsonl", ".folded.json")).read_text())
    assert folded(read(name)) == kept


@pytest.mark.parametrize("name", [log.name for log in LOGS])
def test_every_payload_of_a_golden_log_can_still_be_read(name: str) -> None:
    events = read(name)
    assert len(events) > 20
    assert all(event.payload is not None for event in events)


def test_the_golden_logs_hold_every_kind() -> None:
    assert {event.kind for log in LOGS for event in read(log.name)} >= set(KINDS)
