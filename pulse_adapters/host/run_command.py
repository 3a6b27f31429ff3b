"""The executors of programs: `run-command`, and `collect`, which writes a diagnostic bundle for later analysis."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pulse_adapters.host.outputs import end_of_output
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.allowed_programs import allowed_program, allowed_programs, found_program
from pulse_adapters.workers.conversation import ask
from pulse_adapters.workers.environment import EFFECT_MARK, python_environment
from pulse_adapters.workers.file_systems import PATIENCE_S
from pulse_adapters.workers.file_threads import RecentMounts, ask_after_child
from pulse_adapters.workers.framing import WorkerFault
from pulse_adapters.workers.host_groups import TOOLS, MakeGroup, no_host_group
from pulse_adapters.workers.threads import start_thread
from pulse_adapters.workers.worker import module_program
from pulse_core.actions import COLLECT, RUN_COMMAND, CollectParams, CommandParams
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.ports.executor import Executor, Policy, Result, Safety
from pulse_core.settings.settings import Settings

T = TypeVar("T")
TIMEOUT_S, MEMORY_MIB = 120.0, 512


class Collect(Executor):
    """Writes the bundle in a child process, since reading everything takes long.

    program: the module that the child runs; it is sent the home, the bundle's name, its reason, and its control group.
    group: makes that, in which it gives way to what is guarded.
    """

    action, params = COLLECT.name, CollectParams

    def __init__(self, program: str, home: Path, group: MakeGroup = no_host_group) -> None:
        self._program, self._home, self._group = program, home, group

    def policy(self, params: CollectParams) -> Policy:
        """Repeated after a crash: the new bundle replaces the unfinished one."""
        return Policy(Safety.IDEMPOTENT, timeout=TIMEOUT_S + 10)

    async def execute(self, effect: Effect, params: CollectParams, event: Event) -> Result:
        """Write the bundle; the result has its path, its size, and what could not be read."""
        group = await asyncio.to_thread(self._group, TOOLS, MEMORY_MIB)
        order = {
            "home": str(self._home),
            "name": event.id,
            "why": params.why or effect.reason,
            "group": group.path,
        }
        program = module_program(self._program, env={**python_environment(), EFFECT_MARK: event.id})
        try:
            return Result(await ask(program, order, dict, seconds=TIMEOUT_S))
        except WorkerFault as fault:
            raise PulseError(f"no bundle was written: its process {fault}") from None
        finally:
            await group.end()


_TO_END_IT_S = 10.0
SOON_S, AGAIN_S = 0.2, 10.0
"""Seconds for which the loop waits for the file systems of what is allowed, and after which they are asked again."""
MOST_ASKED = 50
"""Questions that are kept: each that is not answered has a thread, and any rule may make up names."""
_LIST = "/"
"""Stands for the name in the question about the list itself: no name has a slash."""
Real = Mapping[str, str]


class _Asked(NamedTuple):
    """A question about file systems, and since when it is asked, in monotonic seconds."""

    answer: "Future[Any]"
    since: float


class RunCommand(Executor):
    """Runs a program that is allowed, named by its path or found in PATH; a timeout ends its whole process tree."""

    action, params = RUN_COMMAND.name, CommandParams

    def __init__(self, settings: Callable[[], Settings], spawner: Spawner) -> None:
        self._settings, self._spawner = settings, spawner
        self._pinned: tuple[tuple[str, ...], Real] = ((), {})
        self._asked: dict[tuple[str, ...], _Asked] = {}
        self._has_others = RecentMounts()

    def policy(self, params: CommandParams) -> Policy:
        """At most once, unless the request says that it may be repeated."""
        timeout = self._timeout(params) + _TO_END_IT_S
        if params.idempotent:
            return Policy(Safety.IDEMPOTENT, timeout=timeout, retries=2)
        return Policy(Safety.AT_MOST_ONCE, timeout=timeout)

    def _timeout(self, params: CommandParams) -> float:
        return params.timeout_s or self._settings().executors.run_command.timeout / 1e6

    def check(self, params: CommandParams) -> None:
        """Refuse a program that is not allowed; the message names the setting that allows it."""
        self._allowed(params.argv[0])

    def _allowed(self, name: str) -> str:
        """The real path of an allowed program. What may be run is resolved when first used: a link that changes later allows
        nothing new."""
        allow = self._settings().executors.run_command.allow
        if self._pinned[0] != allow:
            words = f"what is in `allow` under [executors.run-command] ({', '.join(allow)})"
            self._pinned = allow, self._answer((*allow, _LIST), words, partial(allowed_programs, allow))
        if "/" in name:
            return allowed_program(name, self._pinned[1])
        where = self._answer((*allow, name), f"PATH, for {name!r},", partial(found_program, name))
        return allowed_program(name, self._pinned[1], where)

    def _answer(self, key: tuple[str, ...], about: str, question: Callable[[], T]) -> T:
        """The answer. Raises PulseError while a file system does not: the loop can't wait for that."""
        if not self._has_others():
            return question()
        now, asked = time.monotonic(), self._asked.get(key)
        try:
            is_hanging = any(not one.answer.done() for one in self._asked.values() if one is not asked)
            if asked is None or (asked.answer.done() and now - asked.since > AGAIN_S):
                self._make_room()
                asked = _Asked(Future(), now)
                start_thread(partial(_resolve, asked, question), "allowed programs")
                self._asked[key] = asked  # only now: what no thread answers would never be asked again
            # A crowd of names would each be waited for.
            found: T = asked.answer.result(0.0 if is_hanging else max(0.0, asked.since + SOON_S - now))
        except TimeoutError as error:
            raise PulseError(f"the file system of {about} does not answer") from error
        except OSError as error:  # there is no thread, process or descriptor to ask with
            raise PulseError(f"{about} can't be looked up: {error.strerror}") from error
        return found

    def _make_room(self) -> None:
        if len(self._asked) >= MOST_ASKED:
            if not (answered := [key for key, one in self._asked.items() if one.answer.done()]):
                raise TimeoutError
            del self._asked[answered[0]]

    async def execute(self, effect: Effect, params: CommandParams, event: Event) -> Result:
        """Run it to its end; any exit code but 0 is a failure."""
        allow = self._settings().executors.run_command.allow
        for name in (_LIST, params.argv[0]):
            with suppress(PulseError):  # asked for, if nobody has since the settings were changed
                self._allowed(params.argv[0])
            if (asked := self._asked.get((*allow, name))) and not asked.answer.done():
                answer = asyncio.wrap_future(asked.answer)
                answer.add_done_callback(
                    asyncio.Future.exception
                )  # looked at, or asyncio tells it with a traceback
                await asyncio.wait([answer], timeout=PATIENCE_S)
        outcome = await self._spawner.run(
            params.argv,
            executable=self._allowed(params.argv[0]),
            cwd=params.cwd,
            timeout=self._timeout(params),
            marker=event.id,
        )
        if outcome.exit != 0:
            words = end_of_output(outcome.output) or "it said nothing"
            how = (
                f"ended with exit {outcome.exit}"
                if outcome.exit > 0
                else f"was ended by signal {-outcome.exit}"
            )
            raise PulseError(f"{params.argv[0]!r} {how}: {words}")
        return Result({"exit": 0, "output": outcome.output})


def _resolve(asked: _Asked, question: Callable[[], object]) -> None:
    try:
        asked.answer.set_result(ask_after_child("what is allowed", question))
    except Exception as error:  # noqa: BLE001 - it is raised where the answer is wanted
        asked.answer.set_exception(error)
