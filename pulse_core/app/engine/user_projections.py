"""The projections of the engine's authors, as the daemon kept them."""

import json
from collections.abc import Mapping

from pulse_core.app.context import HomeContext
from pulse_core.engine.user_checkpoints import FORMAT, PREFIX
from pulse_core.model.errors import NoHome
from pulse_core.ports import UserProjectionState


def kept_user_projections(home: HomeContext) -> Mapping[str, UserProjectionState]:
    """The authors' projections as the daemon kept them last, if that was of this log."""
    found = home.checkpoints()
    names = [name for name, one in found.items() if name.startswith(PREFIX) and one.version == FORMAT]
    if not names:
        return {}
    try:
        with home.events() as log:
            sound = [name for name in names if log.chain_at(found[name].head.seq) == found[name].head.chain]
    except NoHome:
        return {}
    return {
        name.removeprefix(PREFIX): UserProjectionState(version, found[name].head.seq, state)
        for name in sound
        for version, state in [json.loads(found[name].state)]
    }
