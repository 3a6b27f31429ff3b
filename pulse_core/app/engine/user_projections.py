"""The projections of the engine's authors, as the daemon kept them."""

from collections.abc import Mapping

from pulse_core.app.context import HomeContext
from pulse_core.engine.user_checkpoints import user_states
from pulse_core.model.errors import NoHome
from pulse_core.ports import UserProjectionState


def kept_user_projections(home: HomeContext) -> Mapping[str, UserProjectionState]:
    """The authors' projections as the daemon kept them last, if that was of this log."""
    found = tuple(user_states(home.checkpoints()))
    if not found:
        return {}
    try:
        with home.events() as log:
            return {name: state for name, head, state in found if log.chain_at(head.seq) == head.chain}
    except NoHome:
        return {}
