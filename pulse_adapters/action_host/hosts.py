"""Starts action hosts: a child loads a revision, and describes its watchers and executors."""

import asyncio
import os
import pwd
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from pulse_adapters.action_host.action_host import ChildActionHost
from pulse_adapters.action_host.executor_proxy import ChildExecutor
from pulse_adapters.action_host.protocol import LoadReply, load_reply_of, roots_of
from pulse_adapters.action_host.session import ENGINE, CallLost, ChildSession
from pulse_adapters.action_host.supervisor import ChildSupervisor, Failed
from pulse_adapters.action_host.watcher_proxy import ChildWatcher
from pulse_adapters.workers.environment import HANDS_MARK, ROOT, selected_variables
from pulse_adapters.workers.run_as import RunAs
from pulse_adapters.workers.source_locations import Places, with_place
from pulse_core.model.vitals import Window
from pulse_core.ports import CannotLoad, Clock, EngineFault, ReservedNames, Revision

LOAD = 10.0
"""Seconds in which an engine must be loaded."""
_MIB = 1024 * 1024


NOTHING = ReservedNames()


@dataclass(frozen=True, slots=True)
class ChildActionHosts:
    """Starts a child for each revision that has watchers or executors.

    windows: the current ones of all watchers; run_as: called at each start for the user that the child takes on (raises
    CannotLoad if a required user can't be had); plugins: entry points as `module:attribute` by name, whose watchers
    and executors stand before the engine's; load: seconds.
    """

    clock: Clock
    windows: Callable[[], Mapping[str, Window]]
    run_as: Callable[[], RunAs] = RunAs
    plugins: Mapping[str, str] = field(default_factory=dict)
    load: float = LOAD

    async def start(
        self, revision: Revision, memory: int, taken: ReservedNames, failed: Failed
    ) -> ChildActionHost:
        """Start a host for the revision; memory: MiB beyond what the child starts with. Raises CannotLoad.

        failed: called with each fault that no caller receives.
        """
        run_as = await asyncio.to_thread(self.run_as)
        session, found = await self._start_child(revision.path, memory, run_as)
        clashes = tuple(_clashes(found, taken))
        if not (found.watchers or found.executors):
            await _ended(session)
            return ChildActionHost(None, found.faults)
        left_out = {fault.whose for fault in clashes}

        async def again() -> ChildSession:
            session, now = await self._start_child(revision.path, memory, run_as)
            if now != found:
                await _ended(session)
                raise CannotLoad("the same revision holds something else than before")
            return session

        supervisor = ChildSupervisor(session, again, failed)
        action_host = ChildActionHost(supervisor, (*found.faults, *clashes))
        watchers = (ChildWatcher(one, supervisor, self.clock, self.windows, failed) for one in found.watchers)
        executors = (ChildExecutor(one, supervisor, failed) for one in found.executors)
        action_host.take(
            [one for one in watchers if one.whose not in left_out],
            [one for one in executors if one.whose not in left_out],
        )
        return action_host

    async def _start_child(self, path: str, memory: int, run_as: RunAs) -> tuple[ChildSession, LoadReply]:
        user, shown = run_as
        root = _real(await asyncio.to_thread(shown, path) if shown else path)
        mark = f"{HANDS_MARK}={secrets.token_hex(8)}"
        try:
            session = ChildSession(
                _environment(mark, user), mark, Places({root: ""}), user[0] if user else None
            )
        except OSError as error:
            raise CannotLoad(f"no action host can be started: {error}") from error
        try:
            return session, await self._loaded(session, root, memory, user)
        except BaseException:
            await _ended(session)
            raise

    async def _loaded(
        self, session: ChildSession, root: str, memory: int, user: tuple[int, int] | None
    ) -> LoadReply:
        message = {
            "root": root,
            "memory": memory * _MIB,
            "user": user,
            "parent": os.getpid(),
            "plugins": self.plugins,
        }
        try:
            reply = await session.ask(message, ENGINE, self.load)
            if "error" in reply:
                raise CannotLoad(str(reply["error"])[:2_000])
            session.places = Places(roots_of(reply))
            found = load_reply_of(reply)
            session.defined = {
                **{f"watcher:{one.name}": one.place for one in found.watchers},
                **{f"executor:{one.action}": one.place for one in found.executors},
            }
            return found
        except CallLost as lost:
            raise CannotLoad(lost.fault.message) from None
        except ValueError as error:
            raise CannotLoad(f"the action host said what nobody understands: {error}") from error


def _real(path: str) -> str:
    return os.path.realpath(path)


async def _ended(session: ChildSession) -> None:
    session.process.kill()
    await session.clear()


def _clashes(found: LoadReply, taken: ReservedNames) -> Iterator[EngineFault]:
    """Faults for watchers and executors whose name is taken, by the daemon's own or by one listed before."""
    names, keys, actions = set(taken.names), set(taken.keys), set(taken.actions)
    for one in found.watchers:
        for what, word, there in (("name", one.name, names), ("key", one.key, keys)):
            if word in there:
                words = f"left out: another watcher has the {what} {word!r}; take another one, as 'my-{word}'"
                yield EngineFault(f"watcher:{one.name}", with_place(words, one.place))
            there.add(word)
    for two in found.executors:
        if two.action in actions:
            words = f"left out: another executor carries out {two.action!r}; take another one, as 'my-{two.action}'"
            yield EngineFault(f"executor:{two.action}", with_place(words, two.place))
        actions.add(two.action)


def _environment(mark: str, user: tuple[int, int] | None) -> Mapping[str, str]:
    """The child's environment: only what it needs of this process's."""
    given = selected_variables("PATH", "LANG", "HOME", "TMPDIR")
    if user:
        with suppress(KeyError):
            given["HOME"] = pwd.getpwuid(user[0]).pw_dir
    needed = [] if ROOT in (path for path in sys.path if path.endswith("-packages")) else [ROOT]
    name, _, value = mark.partition("=")
    return {
        **given,
        "PYDANTIC_DISABLE_PLUGINS": "__all__",  # looking for some takes longer than all the rest
        name: value,
        **({"PYTHONPATH": os.pathsep.join(needed)} if needed else {}),
    }
