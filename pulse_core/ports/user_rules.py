"""Folds one snapshot through the user's rules, outside of a daemon."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pulse_core.ports.engine import FoldResult

if TYPE_CHECKING:
    from pulse_core.projections import Snapshot


class UserRulesAnswer(NamedTuple):
    """The fold result, or None if no host could run; and caveats to show with it."""

    result: FoldResult | None = None
    caveats: Sequence[str] = ()


class UserRules(Protocol):
    """The engine's rules of one home, any revision of them, run in a host of their own for one question."""

    async def ask(self, snapshot: "Snapshot", revision: str = "") -> UserRulesAnswer:
        """Fold the snapshot; a fault of the rules is a caveat.

        revision: `staging` as it lies there, `main` or a commit; if none is named, the one that was in force then.
        Raises PulseError for an unknown name.
        """
        ...
