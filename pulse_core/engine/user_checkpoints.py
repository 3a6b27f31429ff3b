"""Checkpoints of the projections that the engine's authors wrote, among all the others."""

import json
from collections.abc import Mapping

from pulse_core.model.event import Head
from pulse_core.ports import Checkpoint, Checkpoints, EventLog, UserProjectionState

PREFIX = "engine/"
FORMAT = 1


async def load(log: EventLog, checkpoints: Checkpoints) -> Mapping[str, UserProjectionState]:
    """Load the checkpoints that belong to this log, by the projection's name."""
    found = {
        name.removeprefix(PREFIX): one for name, one in (await checkpoints.load()).items() if _fits(name, one)
    }
    return {
        name: _kept(one) for name, one in found.items() if await log.chain_at(one.head.seq) == one.head.chain
    }


async def save(log: EventLog, checkpoints: Checkpoints, kept: Mapping[str, UserProjectionState]) -> None:
    """Save these beside the built-in ones."""
    made = {}
    for name, one in kept.items():
        if (chain := await log.chain_at(one.seq)) is not None:
            state = json.dumps([one.version, one.state])
            made[PREFIX + name] = Checkpoint(FORMAT, Head(one.seq, chain), state)
    if made:
        await checkpoints.save(made)


def _fits(name: str, checkpoint: Checkpoint) -> bool:
    return name.startswith(PREFIX) and checkpoint.version == FORMAT


def _kept(checkpoint: Checkpoint) -> UserProjectionState:
    version, state = json.loads(checkpoint.state)
    return UserProjectionState(version, checkpoint.head.seq, state)
