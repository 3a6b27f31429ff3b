"""The engine's rules of a home, asked about one snapshot outside of a daemon.

Imported before their process begins, so what it takes long to import waits until that is on its way.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pulse_core.app.context import HomeContext
from pulse_core.model.errors import NoHome, PulseError
from pulse_core.model.names import ENGINE

if TYPE_CHECKING:
    from pulse_core.app.engine.context import StandbyRuleHosts
    from pulse_core.ports.engine import FoldResult, Revision, UserProjectionState
    from pulse_core.ports.engine_repository import EngineRepository
    from pulse_core.projections.state import Snapshot


class UserRulesAnswer(NamedTuple):
    """The fold result, or None if no host could run; and caveats to show with it."""

    result: "FoldResult | None" = None
    caveats: Sequence[str] = ()


@dataclass(frozen=True)
class UserRules:
    """The rules of one home, run in a host of their own for one question.

    hosts: whose process begins at `warm`; repository: with git, which is slow to import; main: its commit, and ensure:
    a commit's export, both without git where that is possible.
    """

    home: HomeContext
    hosts: "StandbyRuleHosts"
    repository: "Callable[[], EngineRepository]"
    main: Callable[[], str]
    ensure: "Callable[[str], Revision]"

    async def ask(self, snapshot: "Snapshot", word: str = "") -> UserRulesAnswer:
        """Fold the snapshot; a fault of the rules is a caveat.

        word: `staging` as it lies there, `main` or a commit; if none is named, the one that was in force then.
        Raises PulseError for an unknown name.
        """
        from pulse_core.app.engine.context import revision_named

        if not word and (why := _unused(snapshot)):
            return UserRulesAnswer(caveats=[f"{why}: the user's rules are not asked"])
        named = revision_named(self.repository(), word) if word else None
        try:
            revision = named or self.ensure(snapshot.engine.commit or self.main())
            result = await self._folded(revision, snapshot)
        except PulseError as error:
            return UserRulesAnswer(caveats=[f"the user's rules could not be asked: {error}"])
        return UserRulesAnswer(result, [f"{fault.whose}: {fault.message}" for fault in result.faults])

    async def _folded(self, revision: "Revision", snapshot: "Snapshot") -> "FoldResult":
        from pulse_core.app.state import history_of
        from pulse_core.engine.effect_filter import filter_effects

        kept = kept_user_projections(self.home)
        host = await self.hosts.start(revision, snapshot, history_of(self.home), kept)
        try:
            if snapshot.engine.commit == revision.commit:
                host.quarantine(tuple(snapshot.engine.quarantined))
            return filter_effects(await host.fold(snapshot, snapshot), snapshot)
        finally:
            await host.close()


def _unused(snapshot: "Snapshot") -> str:
    """Why the daemon runs no rules of the user at that moment; empty if it does."""
    if not snapshot.settings.engine.enabled:
        return "[engine] enabled is false"
    if snapshot.engine.disabled:
        return "the engine is disabled"
    return "the engine is left out by safe mode" if ENGINE in snapshot.control.left_out else ""


def kept_user_projections(home: HomeContext) -> "Mapping[str, UserProjectionState]":
    """The authors' projections as the daemon kept them last, if that was of this log."""
    from pulse_core.app.state import checkpoints_of
    from pulse_core.engine.user_checkpoints import user_states

    try:
        with home.events() as log:
            found = checkpoints_of(home, log)
    except NoHome:
        return {}
    return {name: state for name, _, state in user_states(found)}
