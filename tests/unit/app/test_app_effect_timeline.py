"""Which effect is meant by what people write."""

from collections.abc import Iterator
from typing import Any

import pytest

from pulse_core.app.effect_timeline import EffectTimeline, effect_about, effect_called, effect_named
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect, EffectAttemptFailed, EffectExecuting
from pulse_core.model.moment import iso
from pulse_core.model.short_ids import id_meant
from pulse_core.ports.readers import EventQuery
from tests.events import event
from upulse_cli.time_args import local
from upulse_cli.views.effects import reason
from upulse_cli.views.events import short

KEYS = ("clean-paths:disk:/", "notify:disk:/", "notify:network", "restart-process:web")
ANSWER = Effect(action="note", key="restart-process:db", params={"for_condition": "check:page"})
BOUNCE = Effect(action="restart-process", key="bounce:e1", params={"process": "e1"})
OTHERS = Effect(action="page", key="page:web", params={"process": "web"})
ROWS = [
    event(seq, effect, effect.key, f"0198c0de-0000-7000-8000-00000000000{seq}")
    for seq, effect in enumerate(
        (*(Effect(action="note", key=key) for key in KEYS), ANSWER, BOUNCE, OTHERS), 1
    )
]


class Log:
    def events(self, query: EventQuery, limit: int = 9, newest_first: bool = False) -> Iterator[Event]:
        return (
            row
            for row in reversed(ROWS)
            if query.subject in (None, row.subject) and row.seq > query.since_seq
        )

    def event(self, name: str) -> Event:
        raise UnknownName("event", name, [])


@pytest.mark.parametrize(
    ("name", "key"),
    [("disk:/", "notify:disk:/"), ("network", "notify:network"), ("web", "restart-process:web"), (KEYS[0], KEYS[0]),
     ("check:page", "restart-process:db"), ("e1", "bounce:e1")],
)  # fmt: skip
def test_a_condition_means_what_was_done_about_it_last(name: str, key: str) -> None:
    log: Any = Log()
    assert (effect_named(log, name) or effect_about(log, name) or ROWS[0]).subject == key


def test_the_end_of_an_id_is_taken_as_it_is_shown() -> None:
    log: Any = Log()
    for row in ROWS:
        assert effect_called(log, short(row.id)) == row
        assert id_meant("effect", short(row.id), [one.id for one in ROWS]) == row.id


def test_when_what_failed_is_tried_again_is_told() -> None:
    failed = EffectAttemptFailed(attempt=1, error="no", retry_us=90_000_000)
    about = [event(2, EffectExecuting(), ROWS[0].id), event(3, failed, ROWS[0].id)]
    again = iso(about[-1].at + 90_000_000)
    told = EffectTimeline(ROWS[0], about).spelled()
    assert (told["state"], told["next_try"]) == ("retrying", again)
    assert reason(told).endswith(f"; next try at {local(again)}")
    assert (
        EffectTimeline(ROWS[0], [*about, event(4, EffectExecuting(attempt=2), ROWS[0].id)]).next_try is None
    )


def test_what_nobody_knows_is_refused() -> None:
    log: Any = Log()
    with pytest.raises(PulseError, match="no effect 'disk'"):
        effect_called(log, "disk")
    assert effect_about(log, "disk") is None
