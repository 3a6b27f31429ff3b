"""What every store of vitals promises."""

from pulse_core.model.event import Head
from pulse_core.model.moment import Moment
from pulse_core.model.tick import LayerOutcome, TickRecord
from pulse_core.model.vitals import Trimmed
from pulse_core.ports.stores import Vitals


def at(second: int) -> Moment:
    return Moment(second * 1_000_000, "boot", second)


def tick(number: int, woken_by: str = "timer") -> TickRecord:
    return TickRecord(
        tick=number,
        moment=at(number),
        woken_by=woken_by,
        head=Head(number, bytes([number]) * 32),
        samples=(1, 2),
        settings="digest",
        version="0.1",
        layers=(
            LayerOutcome("process_watchdog", "added", ("restart x",), 12),
            LayerOutcome("other", "passed"),
        ),
        effects=("id-1",),
        tick_ms=15_000,
        took_us=321,
        snapshot="abc" if number % 2 else None,
        engine="commit" if number % 2 else None,
    )


async def test_samples_come_back_by_id(vitals: Vitals) -> None:
    first = vitals.sample("system", at(1), {"cpu": 0.5, "disks": {"/": 3}})
    second = vitals.sample("processes", at(2), {})
    await vitals.flush()
    assert await vitals.samples([second.id, first.id, 99]) == [first, second]
    assert await vitals.samples([]) == []


async def test_ids_grow(vitals: Vitals) -> None:
    ids = [vitals.sample("k", at(1), {}).id for _ in range(5)]
    assert ids == sorted(set(ids))


async def test_what_was_not_flushed_can_be_read(vitals: Vitals) -> None:
    sample = vitals.sample("k", at(1), {"x": 1})
    vitals.record(tick(1))
    assert await vitals.samples([sample.id]) == [sample]
    assert await vitals.ticks(1) == [tick(1)]


async def test_recent_samples_are_later_than_asked(vitals: Vitals) -> None:
    samples = [vitals.sample("k", at(second), {}) for second in range(5)]
    assert await vitals.recent(at(2).at) == samples[3:]


async def test_the_newest_sample_of_a_key_is_the_one_that_has_the_field(vitals: Vitals) -> None:
    vitals.sample("log", at(1), {"places": {"a.b": 1}, "odd 'key": 1})
    kept = vitals.sample("log", at(2), {"places": {"a.b": 2}})
    vitals.sample("log", at(3), {"lines": 3})
    vitals.sample("other", at(4), {"places": {}})
    assert await vitals.newest("log", "places") == kept
    odd = await vitals.newest("log", "odd 'key")
    assert odd is not None
    assert odd.id < kept.id
    assert await vitals.newest("log", "nothing") is None
    assert await vitals.newest("nobody", "places") is None


async def test_the_last_ticks_come_oldest_first(vitals: Vitals) -> None:
    for number in range(1, 6):
        vitals.record(tick(number))
    await vitals.flush()
    assert await vitals.ticks(2) == [tick(4), tick(5)]
    assert len(await vitals.ticks(100)) == 5


async def test_a_tick_recorded_again_is_replaced(vitals: Vitals) -> None:
    vitals.record(tick(1))
    await vitals.flush()
    vitals.record(tick(1, woken_by="event"))
    vitals.record(tick(2))
    vitals.record(tick(2, woken_by="event"))
    assert await vitals.ticks(9) == [tick(1, woken_by="event"), tick(2, woken_by="event")]


async def test_a_sample_that_is_no_json_does_not_raise(vitals: Vitals) -> None:
    odd = vitals.sample("odd", at(1), {"x": object()})
    good = vitals.sample("good", at(1), {"x": 1})
    await vitals.flush()
    assert good in await vitals.samples([odd.id, good.id])


async def test_what_is_forgotten_was_never_written(vitals: Vitals) -> None:
    kept = vitals.sample("k", at(1), {})
    vitals.record(tick(1))
    await vitals.flush()
    gone = vitals.sample("k", at(2), {})
    vitals.record(tick(2))
    vitals.forget()
    assert await vitals.samples([kept.id, gone.id]) == [kept]
    assert await vitals.ticks(9) == [tick(1)]
    assert vitals.sample("k", at(3), {}).id > gone.id


MINUTE = 60


async def test_what_is_older_goes_by_whole_minutes(vitals: Vitals) -> None:
    samples = [vitals.sample("k", at(second), {"x": second}) for second in range(0, 4 * MINUTE, 20)]
    for number in range(1, 5):
        vitals.record(tick(number * MINUTE))
    gone = await vitals.trim(at(2 * MINUTE + 30).at)
    assert gone == Trimmed(6, 2, 0)
    assert await vitals.samples([sample.id for sample in samples]) == samples[6:]
    assert await vitals.ticks(9) == [tick(3 * MINUTE), tick(4 * MINUTE)]
    assert await vitals.trim(at(2 * MINUTE + 30).at) == Trimmed()


async def test_ticks_with_a_snapshot_stay_as_long_as_minutes_do(vitals: Vitals) -> None:
    for number in range(1, 7):
        vitals.record(tick(number))
    assert (await vitals.trim(at(6).at)).ticks == 2
    assert [one.tick for one in await vitals.ticks(9)] == [1, 3, 5, 6]
    assert (await vitals.trim(at(6).at, at(3).at)).ticks == 1
    assert [one.tick for one in await vitals.ticks(9)] == [3, 5, 6]


async def test_minutes_go_in_their_turn(vitals: Vitals) -> None:
    for minute in range(5):
        vitals.sample("k", at(minute * MINUTE), {"x": minute})
    await vitals.trim(at(5 * MINUTE).at)
    assert (await vitals.trim(at(0).at, at(3 * MINUTE + 59).at)).minutes == 3
    assert (await vitals.trim(at(0).at, at(9 * MINUTE).at)).minutes == 2


async def test_samples_that_hold_no_numbers_go_all_the_same(vitals: Vitals) -> None:
    vitals.sample("odd", at(1), {"x": object()})
    vitals.sample("odd", at(2), {"x": float("nan")})
    assert (await vitals.trim(at(MINUTE).at)).samples == 2
    assert await vitals.recent(0) == []
