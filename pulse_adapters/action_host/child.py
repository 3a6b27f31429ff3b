"""The child process: confines itself, loads the engine, and runs calls until its pipe is closed."""

import asyncio
import contextvars
import gc
import os
import traceback

from pulse_adapters.action_host.call_attribution import CALL, CallMarker
from pulse_adapters.action_host.call_tracking import CallResources
from pulse_adapters.action_host.dispatcher import CallDispatcher
from pulse_adapters.action_host.limits import LimitUnavailable, confine
from pulse_adapters.action_host.loader import ActionContents, ActionsNotLoadable, load
from pulse_adapters.workers import host_side
from pulse_adapters.workers.descriptors import REQUESTS, WHERE
from pulse_adapters.workers.environment import HANDS_MARK
from pulse_adapters.workers.framing import Message
from pulse_adapters.workers.source_locations import Places, roots_of_plugins
from pulse_core.projections import snapshot  # noqa: F401 - authors import it, as a user who may not read this Python

_OURS = ("PYTHONPATH", "PYDANTIC_DISABLE_PLUGINS")
"""Variables that are not for the programs that the engine's code starts."""


class ActionHostChild:
    """Reads requests and answers each when it is done, in any order."""

    def __init__(self, requests: host_side.Requests, contents: ActionContents, places: Places) -> None:
        self._requests, self._acting = requests, CallDispatcher(contents, places)
        self._begun = CallResources(f"{HANDS_MARK}={os.environ[HANDS_MARK]}")
        self._marks = CallMarker(host_side.shared())
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._ended = asyncio.Event()

    async def serve(self) -> None:
        """Serve until the daemon closes the pipe."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(self._begun.pool)
        loop.set_task_factory(self._marks.task)
        loop.add_reader(REQUESTS, self._read)
        self._take(self._requests.take(b""))
        await self._ended.wait()

    def _read(self) -> None:
        raw = host_side.receive_bytes()
        if not raw:
            self._ended.set()
            asyncio.get_running_loop().remove_reader(REQUESTS)
        self._take(self._requests.take(raw))

    def _take(self, requests: list[Message]) -> None:
        for request in requests:
            if request["do"] == "cancel":
                if call := self._calls.get(request["call"]):
                    call.cancel()
            else:
                self._start(request)

    def _start(self, request: Message) -> None:
        """Run a request in a task that is attributed to it."""
        number, context = request["id"], contextvars.copy_context()
        context.run(CALL.set, number)
        loop = asyncio.get_running_loop()
        call: asyncio.Task[None] = context.run(loop.create_task, self._carry_out(request, number))
        self._calls[number] = call
        call.add_done_callback(lambda _: self._answer_not_started(number))

    async def _carry_out(self, request: Message, number: int) -> None:
        answer = await self._acting.answer(request)
        del self._calls[number]  # what is cleared away now is not cancelled
        if "ok" not in answer:
            await self._begun.end(number)
        self._begun.forget(number)
        host_side.send({"id": number, **answer})

    def _answer_not_started(self, number: int) -> None:
        """Answer for a call that was cancelled before its first step."""
        if self._calls.pop(number, None):
            host_side.send({"id": number, "wrong": "cancelled", "words": ""})


def _prepare() -> None:
    """Begin as every host does; remove Python's variables from the environment of programs that it starts."""
    host_side.begin(all_threads=True)
    for name in _OURS:
        os.environ.pop(name, None)


def main() -> None:
    """Run the child until the daemon is gone."""
    _prepare()
    requests = host_side.Requests()
    begin = next(host_side.requests(requests), None)
    if begin is None:
        host_side.exit_at_once(0)
    plugins = begin["plugins"]
    roots = {begin["root"]: "", **roots_of_plugins(plugins)}
    places = Places(roots)
    try:
        confine(begin["memory"], begin["user"], begin["parent"])
        os.chdir(begin["root"])
        contents = load(begin["root"], plugins, places)
    except (LimitUnavailable, ActionsNotLoadable, OSError) as error:
        host_side.send({"id": begin["id"], "error": str(error)})
        host_side.exit_at_once(1)
    host_side.send({"id": begin["id"], "roots": roots, **contents.told})
    gc.collect()
    gc.freeze()  # what is loaded stays, and is not searched for garbage again and again
    host_side.exit_at_once(_served(ActionHostChild(requests, contents, places)))


def _served(host: ActionHostChild) -> int:
    """Run the loop; 1 if the engine's code ended it, which is then reported like a hang."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(host.serve())
    except BaseException:  # noqa: BLE001 - whatever it was, it ended the loop
        os.write(WHERE, traceback.format_exc(limit=20)[-3_000:].encode("utf-8", "replace"))
        return 1
    return 0


if __name__ == "__main__":
    main()
