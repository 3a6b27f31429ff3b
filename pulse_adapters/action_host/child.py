"""The child process: confines itself, loads the engine, and runs calls until its pipe is closed."""

import asyncio
import contextvars
import gc
import os
import resource
import signal
import traceback
from collections.abc import Sequence

from pydantic_core import from_json

import pulse_adapters.workers.import_trim  # noqa: F401 - before all that loads pydantic, and while this Python can be read
from pulse_adapters.action_host.call_tracking import CALL, CallTracker
from pulse_adapters.action_host.dispatcher import CallDispatcher
from pulse_adapters.action_host.loader import ActionsNotLoadable, load
from pulse_adapters.sandbox.priorities import refuse_high_priority, refuse_siblings
from pulse_adapters.workers import child_side, host_side
from pulse_adapters.workers.child_side import within_hard_limit
from pulse_adapters.workers.descriptors import REQUESTS, WHERE
from pulse_adapters.workers.drop_privileges import become_user
from pulse_adapters.workers.framing import LARGEST_REQUEST, Frames, Message
from pulse_adapters.workers.source_locations import Places, roots_of_plugins
from pulse_adapters.workers.syscalls import prctl
from pulse_core.projections import state  # noqa: F401 - authors import it, as a user who may not read this Python

FILES = 256
PROCESSES = 256
"""Of a user of its own; where the user is the daemon's, a limit would count everything that one runs."""
_OURS = ("PYTHONPATH", "PYDANTIC_DISABLE_PLUGINS")
"""Variables that are not for the programs that the engine's code starts."""
_DEATH_SIGNAL, _NO_NEW_PRIVS = 1, 38


class ActionHostChild:
    """Reads requests and answers each when it is done, in any order."""

    def __init__(self, frames: Frames, calls: CallDispatcher, tracker: CallTracker) -> None:
        self._frames, self._dispatcher, self._tracker = frames, calls, tracker
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._ended = asyncio.Event()

    async def serve(self) -> None:
        """Serve until the daemon closes the pipe."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(self._tracker.pool)
        loop.set_task_factory(self._tracker.task)
        loop.add_reader(REQUESTS, self._read)
        self._take(b"")
        await self._ended.wait()

    def _read(self) -> None:
        raw = child_side.receive_bytes()
        if not raw:
            self._ended.set()
            asyncio.get_running_loop().remove_reader(REQUESTS)
        self._take(raw)

    def _take(self, raw: bytes) -> None:
        for request in map(from_json, self._frames.take(raw)):
            if request["do"] == "cancel":
                if call := self._calls.get(request["call"]):
                    call.cancel()
            else:
                self._start(request)

    def _start(self, request: Message) -> None:
        """Run a request in a task that is attributed to it."""
        self._dispatcher.take(request)
        number, context = request["id"], contextvars.copy_context()
        context.run(CALL.set, number)
        loop = asyncio.get_running_loop()
        call: asyncio.Task[None] = context.run(loop.create_task, self._carry_out(request, number))
        self._calls[number] = call
        call.add_done_callback(lambda _: self._answer_not_started(number))

    async def _carry_out(self, request: Message, number: int) -> None:
        answer = await self._dispatcher.answer(request)
        del self._calls[number]  # what is cleared away now is not cancelled
        is_cleared = True
        if "wrong" in answer:
            try:
                await self._tracker.end(number)
            except OSError:  # as without a descriptor, which may be what is wrong
                is_cleared = False
        self._tracker.forget(number)
        host_side.send({"id": number, **answer})
        if not is_cleared:
            os._exit(1)  # then the daemon ends all that was begun here

    def _answer_not_started(self, number: int) -> None:
        """Answer for a call that was cancelled before its first step."""
        if self._calls.pop(number, None):
            host_side.send({"id": number, "wrong": "cancelled", "words": ""})


def confine(memory: int, user: Sequence[int] | None, parent: int) -> None:
    """Switch to the user, set the limits, and die with the daemon. Raises OSError, ValueError.

    Only a user of its own keeps this process from the daemon: without one it may do what the daemon may, which
    `upulse status` calls `isolation: partial (no user)`. memory: bytes beyond what it has; parent: the daemon's pid.
    """
    child_side.limit_memory(memory)
    if user:
        resource.setrlimit(resource.RLIMIT_NPROC, (within_hard_limit(resource.RLIMIT_NPROC, PROCESSES),) * 2)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # it stays, for programs that need more and say so
    resource.setrlimit(resource.RLIMIT_NOFILE, (within_hard_limit(resource.RLIMIT_NOFILE, FILES), hard))
    refuse_high_priority(user)
    refuse_siblings()
    if user:
        become_user(*user)
        prctl(_NO_NEW_PRIVS, 1)  # no program that it starts gives back what it gave up
    prctl(_DEATH_SIGNAL, signal.SIGKILL)  # after the change of user, which takes it back
    if os.getppid() != parent:
        os._exit(0)


def main() -> None:
    """Run the child until the daemon is gone."""
    host_side.begin(all_threads=True)
    for name in _OURS:
        os.environ.pop(name, None)
    frames = Frames(LARGEST_REQUEST)
    begin = next(host_side.requests(frames), None)
    if begin is None:
        os._exit(0)
    places = Places({begin["root"]: "", **roots_of_plugins(begin["plugins"])})
    trouble = "the action host can't be confined: "
    try:
        child_side.join_group(begin["group"])
        confine(begin["memory"], begin["user"], begin["parent"])
        trouble = ""
        os.chdir(begin["root"])
        tracker = CallTracker(host_side.shared())
        contents = load(begin["root"], begin["plugins"], places)
    except (ActionsNotLoadable, OSError, ValueError) as error:
        host_side.send({"id": begin["id"], "error": f"{trouble}{error}"})
        os._exit(1)
    host_side.send({"id": begin["id"], **contents.told})
    gc.collect()
    gc.freeze()  # what is loaded stays, and is not searched for garbage again and again
    gc.enable()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(ActionHostChild(frames, CallDispatcher(contents, places), tracker).serve())
    except BaseException:  # noqa: BLE001 - the engine's code ended the loop, which is reported like a hang
        os.write(WHERE, traceback.format_exc(limit=20)[-3_000:].encode("utf-8", "replace"))
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
