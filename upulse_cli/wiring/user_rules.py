"""The user's rules of a home, asked in a rule host that is started for one question.

Git is imported only where a revision has to be looked up or laid out: it takes long.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pulse_adapters.git.revisions import ensure_revision
from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_adapters.rule_host.process import RuleChild
from pulse_core.app.context import HomeContext
from pulse_core.app.engine.context import revision_named
from pulse_core.app.engine.user_projections import kept_user_projections
from pulse_core.app.state import history_after
from pulse_core.engine.effect_filter import filter_effects
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.ports import CannotLoad, FoldResult, Revision
from pulse_core.ports.user_rules import UserRules, UserRulesAnswer
from pulse_core.projections import Snapshot


@asynccontextmanager
async def home_user_rules(home: HomeContext, hosts: ChildHosts) -> AsyncIterator[UserRules]:
    """The rules of a home. Their host's process begins at once, and loads while the caller does something else."""
    if not (home.layout.path / "engine" / ".git").exists():
        yield NoUserRules()
        return
    rules = HomeUserRules(home, hosts)
    await rules.begin()
    try:
        yield rules
    finally:
        await rules.end()


class NoUserRules:
    """`UserRules` of a home without an engine."""

    async def ask(self, snapshot: Snapshot, revision: str = "") -> UserRulesAnswer:
        return UserRulesAnswer()


class HomeUserRules:
    """`UserRules` on the engine's repository of a home."""

    def __init__(self, home: HomeContext, hosts: ChildHosts) -> None:
        self._home, self._hosts = home, hosts
        self._child: RuleChild | CannotLoad | None = None

    async def begin(self) -> None:
        """Begin the process. Why it can't be is said to whoever asks."""
        try:
            self._child = await self._hosts.child()
        except CannotLoad as error:
            self._child = error

    async def end(self) -> None:
        """End the process, if nobody has asked it."""
        if isinstance(self._child, RuleChild):
            await self._child.shut_down()

    async def ask(self, snapshot: Snapshot, revision: str = "") -> UserRulesAnswer:
        if not snapshot.settings.engine.enabled and not revision:
            return UserRulesAnswer(caveats=["[engine] enabled is false: the user's rules are not asked"])
        named = self._called(revision) if revision else None
        try:
            result = await self._answer(named or self._in_force(snapshot.engine.commit), snapshot)
        except PulseError as error:
            return UserRulesAnswer(caveats=[f"the user's rules could not be asked: {error}"])
        return UserRulesAnswer(result, [f"{fault.whose}: {fault.message}" for fault in result.faults])

    def _called(self, word: str) -> Revision:
        from pulse_adapters.git.repository import Repository

        return revision_named(Repository(self._home.layout.path), word)

    def _in_force(self, commit: str) -> Revision:
        """The commit, laid out, or main where the log does not name one."""
        if not commit:
            from pulse_adapters.git.repository import Repository

            commit = Repository(self._home.layout.path).head()
        return ensure_revision(self._home.layout.path, commit)

    async def _answer(self, revision: Revision, snapshot: Snapshot) -> FoldResult:
        child, self._child = self._child, None
        if not isinstance(child, RuleChild):
            raise child or CannotLoad("their host has been asked already")

        def history(seq: int) -> AsyncIterator[Sequence[Event]]:
            return history_after(self._home, seq)

        kept = kept_user_projections(self._home)
        host = await self._hosts.entrusted(child, revision, snapshot, history, kept)
        try:
            if snapshot.engine.commit == revision.commit:
                host.quarantine(tuple(snapshot.engine.quarantined))
            return filter_effects(await host.fold(snapshot, snapshot), snapshot)
        finally:
            await host.close()
