"""Checkpoints of the projections that the engine's authors wrote, among all the others."""

import json
from collections.abc import Iterator, Mapping

from pulse_core.model.event import Checkpoint, Head
from pulse_core.ports.engine import UserProjectionState
from pulse_core.ports.log import EventLog
from pulse_core.ports.stores import Checkpoints

PREFIX = "engine/"
FORMAT = 1


def user_states(checkpoints: Mapping[str, Checkpoint]) -> Iterator[tuple[str, Head, UserProjectionState]]:
    """The projection's name, the place in the log, and the state of each."""
    for name, one in checkpoints.items():
        if name.startswith(PREFIX) and one.version == FORMAT:
            version, state = json.loads(one.state)
            yield name.removeprefix(PREFIX), one.head, UserProjectionState(version, one.head.seq, state)


async def load(log: EventLog, checkpoints: Checkpoints) -> Mapping[str, UserProjectionState]:
    """Load the checkpoints that belong to this log, by the projection's name."""
    found = user_states(await checkpoints.load())
    return {name: state for name, head, state in found if await log.chain_at(head.seq) == head.chain}


async def save(log: EventLog, checkpoints: Checkpoints, kept: Mapping[str, UserProjectionState]) -> None:
    """Save these beside the built-in ones."""
    made = {}
    for name, one in kept.items():
        if (chain := await log.chain_at(one.seq)) is not None:
            state = json.dumps([one.version, one.state])
            made[PREFIX + name] = Checkpoint(FORMAT, Head(one.seq, chain), state)
    if made:
        await checkpoints.save(made)
