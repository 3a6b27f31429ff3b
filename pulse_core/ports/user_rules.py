"""Asking the user's own rules of one snapshot, outside of a daemon."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pulse_core.ports.engine import FoldResult

if TYPE_CHECKING:
    from pulse_core.projections import Snapshot


class UserRulesAnswer(NamedTuple):
    """What they say, or None if nobody could be asked; and the words that must go with it."""

    result: FoldResult | None = None
    caveats: Sequence[str] = ()


class UserRules(Protocol):
    """The engine's rules of one home, any revision of them, run in a host of their own for one question."""

    async def ask(self, snapshot: "Snapshot", revision: str = "") -> UserRulesAnswer:
        """What the rules say of the snapshot; a fault of theirs is a caveat.

        revision: `staging` as it lies there, `main` or a commit; if none is named, the one that was in force then.
        Raises PulseError for a name that is none.
        """
        ...
