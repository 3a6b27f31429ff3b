"""What every store of checkpoints promises."""

from pulse_core.model.event import Checkpoint, Head
from pulse_core.ports.stores import Checkpoints

ONE = Checkpoint(1, Head(7, b"c" * 32), '{"a": 1}')
TWO = Checkpoint(3, Head(9, b"d" * 32), "[]")


async def test_there_is_nothing_at_first(checkpoints: Checkpoints) -> None:
    assert await checkpoints.load() == {}


async def test_what_was_saved_is_loaded(checkpoints: Checkpoints) -> None:
    await checkpoints.save({"one": ONE, "two": TWO})
    assert await checkpoints.load() == {"one": ONE, "two": TWO}


async def test_only_the_named_ones_are_replaced(checkpoints: Checkpoints) -> None:
    await checkpoints.save({"one": ONE, "two": ONE})
    await checkpoints.save({"two": TWO})
    assert await checkpoints.load() == {"one": ONE, "two": TWO}
