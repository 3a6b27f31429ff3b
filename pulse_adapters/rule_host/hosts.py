"""Starts rule hosts: a child loads a revision, receives the history, and is ready for the next tick."""

import asyncio
import os
import site
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pulse_adapters.rule_host.host import ChildRuleHost, RuleChild
from pulse_adapters.rule_host.replies import kinds_of, loaded_of, roots_of, units_of
from pulse_adapters.rule_host.snapshot_delta import full_snapshot
from pulse_adapters.sandbox.scratch_folder import Scratch
from pulse_adapters.workers.environment import ROOT, selected_variables
from pulse_adapters.workers.run_as import RunAs
from pulse_adapters.workers.source_locations import Places, roots_of_plugins
from pulse_core.model.event import Event
from pulse_core.ports import CannotLoad, History, LoadedRevision, Revision, UserProjectionState
from pulse_core.projections import Snapshot

LOAD = 10.0
"""Seconds in which an engine must be loaded, and a batch of history folded."""
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ChildHosts:
    """`Hosts` as child processes.

    scratch: the parent of each child's own writable folder (the system's temporary folder if None); run_as: called at
    each start for the user that the child takes on (raises CannotLoad if a required user can't be had); plugins: entry
    points as `module:attribute` by name; dev: report non-deterministic calls while rules run, which makes them slower.
    """

    scratch: str | None = None
    run_as: Callable[[], RunAs] = RunAs
    plugins: Mapping[str, str] = field(default_factory=dict)
    dev: bool = False
    load: float = LOAD

    async def start(
        self, revision: Revision, prev: Snapshot, history: History, kept: Mapping[str, UserProjectionState]
    ) -> ChildRuleHost:
        """Start a host that has loaded the revision and stands at `prev`. Raises CannotLoad."""
        return await self.entrusted(await self.child(), revision, prev, history, kept)

    async def entrusted(
        self,
        child: RuleChild,
        revision: Revision,
        prev: Snapshot,
        history: History,
        kept: Mapping[str, UserProjectionState],
    ) -> ChildRuleHost:
        """Make a host of a child that was started before. Raises CannotLoad."""
        try:
            shown = child.run_as.shown
            path = await asyncio.to_thread(shown, revision.path) if shown else revision.path
            answer = await self._load(child, _real(path), prev)
            await _Rebuilding(child, answer, prev, self.load).run(history, kept)
            return ChildRuleHost(child, loaded_of(answer), prev)
        except ValueError as error:
            await child.close()
            raise CannotLoad(f"the rule host said what nobody understands: {error}") from error
        except BaseException:
            await child.close()
            raise

    async def child(self) -> RuleChild:
        """Start a child, which imports everything but the authors' code. Raises CannotLoad."""
        run_as = await asyncio.to_thread(self.run_as)
        try:
            scratch = Scratch(self.scratch, run_as.user)
        except OSError as error:
            raise CannotLoad(f"no rule host can be started: {error}") from error
        try:
            return RuleChild(_environment(scratch.path, self.plugins), scratch, run_as)
        except OSError as error:
            await scratch.remove()
            raise CannotLoad(f"no rule host can be started: {error}") from error

    async def _load(self, child: RuleChild, root: str, prev: Snapshot) -> Mapping[str, Any]:
        child.places = Places({root: ""})
        message = {
            "root": root,
            "parent": os.getpid(),
            "scratch": child.scratch.path,
            "user": child.run_as.user,
            "memory": prev.settings.engine.memory * _MIB,
            "plugins": self.plugins,
            "dev": self.dev,
            "prev": full_snapshot(prev),
        }
        answer = await child.ask(message, self.load)
        if answer is None:
            raise CannotLoad((await child.reason_of_end()).message)
        if "error" in answer:
            raise CannotLoad(str(answer["error"]))
        child.places, child.units = Places(roots_of(answer)), units_of(answer)
        return answer


class _Rebuilding:
    """Brings the authors' projections up to the row of `prev`."""

    def __init__(self, child: RuleChild, answer: Mapping[str, Any], prev: Snapshot, seconds: float) -> None:
        self._child, self._seconds = child, seconds
        self._loaded: LoadedRevision = loaded_of(answer)
        self._kinds = kinds_of(answer)
        self._row = prev.state.seq

    async def run(self, history: History, kept: Mapping[str, UserProjectionState]) -> None:
        """Resume projections whose kept value fits; fold the others from the beginning of the log."""
        begins = [self._resumed(name, kept.get(name)) for name in self._loaded.projections]
        if not begins:
            return
        first = min(begins)
        if first < self._row:
            async for events in history(first):
                if batch := [event for event in events if event.seq <= self._row and self._wants(event)]:
                    await self._fold(batch, batch[-1].seq)
        await self._fold((), self._row)

    def _resumed(self, name: str, kept: UserProjectionState | None) -> int:
        """The row after which a projection is folded."""
        if kept is None or kept.version != self._loaded.projections[name] or kept.seq > self._row:
            return 0
        self._child.tell({"do": "resume", "name": name, "seq": kept.seq, "state": kept.state})
        return kept.seq

    def _wants(self, event: Event) -> bool:
        return any(kinds is None or event.kind in kinds for kinds in self._kinds.values())

    async def _fold(self, events: Sequence[Event], upto: int) -> None:
        message = {"do": "history", "events": events, "upto": upto}
        if await self._child.ask(message, self._seconds) is None:
            fault = await self._child.reason_of_end()
            raise CannotLoad(f"{fault.whose}: {fault.message}")


def _real(path: str) -> str:
    return os.path.realpath(path)


def _environment(scratch: str, plugins: Mapping[str, str]) -> Mapping[str, str]:
    """The child's environment: only what it needs of this process's."""
    given = selected_variables("PATH", "LANG")
    found = (os.path.dirname(path) for path in roots_of_plugins(plugins))
    needed = [path for path in dict.fromkeys((ROOT, *found)) if path not in site.getsitepackages()]
    return {
        **given,
        "PYTHONHASHSEED": "0",
        "PYDANTIC_DISABLE_PLUGINS": "__all__",  # looking for some takes longer than all the rest
        "TMPDIR": scratch,
        **({"PYTHONPATH": os.pathsep.join(needed)} if needed else {}),
    }
