"""The windows in a kept snapshot: read back as they were, and of what does not change written once."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from pulse_core.app.engine.recorded_ticks import kept_windows
from pulse_core.model.json_types import Json
from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Sample, Window
from pulse_core.projections.state import Snapshot
from pulse_core.tick.ticker import encode_snapshot

NOW = Moment(60_000_000, "boot", 60_000_000)
VALUES: list[Json] = [True, 1, 1.0, None, {"up": True, "pid": 7}, {"up": True, "pid": 8}]


class OneObject:
    """Implements `pulse_core.ports.readers.ObjectReader` for this blob."""

    def __init__(self, blob: bytes) -> None:
        self.blob, self.name = blob, sha256(blob).hexdigest()

    def read(self, name: str) -> bytes | None:
        return self.blob if name == self.name else None

    def exists(self, name: str) -> bool:
        return name == self.name


def window(of: list[dict[str, Json]]) -> Window:
    return Window(tuple(Sample(number, "alive", NOW.plus(number), data) for number, data in enumerate(of)))


def encoded(of: Window) -> bytes:
    return "".join(encode_snapshot(Snapshot(1, NOW, windows={"alive": of, "none": Window()}))).encode()


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.sampled_from(VALUES)), max_size=8))
def test_the_windows_are_read_back_as_they_were(of: list[dict[str, Json]]) -> None:
    one, told = OneObject(encoded(window(of))), window(of)
    again = kept_windows(one, one.name)
    assert repr(again) == repr(
        {"alive": told, "none": Window()}
    )  # 1, 1.0 and true are equal, and differ in words


def test_a_minute_of_many_processes_of_which_one_dies_now_and_then_takes_little_more_than_one_sample() -> (
    None
):
    names = [f"agent-{number}" for number in range(100)]
    data: dict[str, Json] = {name: {"up": True, "pid": 1, "detail": "it is alive"} for name in names}
    samples: list[dict[str, Json]] = [data]
    for number in range(600):
        samples.append(data := data | {names[number % 100]: {"up": False, "detail": "it is gone"}})
    assert len(encoded(window(samples))) < 20 * len(encoded(window(samples[:1])))


def test_those_of_an_earlier_version_are_read() -> None:
    one = OneObject(b'{"version":1,"windows":{"alive":[[3,[60000000,"boot",60000000],{"a":{"up":true}}]]}}')
    assert kept_windows(one, one.name) == {"alive": Window((Sample(3, "alive", NOW, {"a": {"up": True}}),))}
