"""The child itself: confines itself, loads the engine, and carries out calls until its pipe is closed."""

import asyncio
import contextvars
import gc
import os
import traceback

from pulse_adapters.action_host.call_attribution import CALL, ENV, CallMarks
from pulse_adapters.action_host.call_tracking import CallResources
from pulse_adapters.action_host.dispatcher import CallDispatcher
from pulse_adapters.action_host.limits import Unlimited, confine
from pulse_adapters.action_host.loader import ActionContents, ActionsNotLoadable, load
from pulse_adapters.child import inside
from pulse_adapters.child.frames import Frames, Message
from pulse_adapters.child.given import REQUESTS, WHERE
from pulse_adapters.child.places import Places, roots_of_plugins
from pulse_core.projections import snapshot  # noqa: F401 - authors import it, as a user who may not read this Python

_OURS = ("PYTHONPATH", "PYDANTIC_DISABLE_PLUGINS")
"""Variables that are not for the programs that the engine's code starts."""


class ActionHostChild:
    """Reads requests and answers each when it is done, in whatever order that happens."""

    def __init__(self, frames: Frames, contents: ActionContents, places: Places) -> None:
        self._frames, self._acting = frames, CallDispatcher(contents, places)
        self._begun = CallResources(f"{ENV}={os.environ[ENV]}")
        self._marks = CallMarks(inside.shared())
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._ended = asyncio.Event()

    async def serve(self) -> None:
        """Until the daemon hangs up."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(self._begun.pool)
        loop.set_task_factory(self._marks.task)
        loop.add_reader(REQUESTS, self._read)
        self._take(self._frames.take(b""))
        await self._ended.wait()

    def _read(self) -> None:
        raw = inside.heard()
        if not raw:
            self._ended.set()
            asyncio.get_running_loop().remove_reader(REQUESTS)
        self._take(self._frames.take(raw))

    def _take(self, requests: list[Message]) -> None:
        for request in requests:
            if request["do"] == "cancel":
                if call := self._calls.get(request["call"]):
                    call.cancel()
            else:
                self._start(request)

    def _start(self, request: Message) -> None:
        """Carry it out in a task of its own, on its own account."""
        number, context = request["id"], contextvars.copy_context()
        context.run(CALL.set, number)
        loop = asyncio.get_running_loop()
        call: asyncio.Task[None] = context.run(loop.create_task, self._carry_out(request, number))
        self._calls[number] = call
        call.add_done_callback(lambda _: self._never_begun(number))

    async def _carry_out(self, request: Message, number: int) -> None:
        answer = await self._acting.answer(request)
        del self._calls[number]  # what is cleared away now is not cancelled
        if "ok" not in answer:
            await self._begun.end(number)
        self._begun.forget(number)
        inside.send({"id": number, **answer})

    def _never_begun(self, number: int) -> None:
        """Answer for a call that was cancelled before its first step."""
        if self._calls.pop(number, None):
            inside.send({"id": number, "wrong": "cancelled", "words": ""})


def _prepare() -> None:
    """As every child; besides, what is only for Python here is not for the programs that it starts."""
    inside.prepare(all_threads=True)
    for name in _OURS:
        os.environ.pop(name, None)


def main() -> None:
    """Serve until there is nobody to serve."""
    _prepare()
    frames = inside.listening()
    begin = next(inside.requests(frames), None)
    if begin is None:
        inside.leave(0)
    plugins = begin["plugins"]
    roots = {begin["root"]: "", **roots_of_plugins(plugins)}
    places = Places(roots)
    try:
        held = confine(begin["memory"], begin["user"], begin["parent"], begin["group"])
        os.chdir(begin["root"])
        contents = load(begin["root"], plugins, places)
    except (Unlimited, ActionsNotLoadable, OSError) as error:
        inside.send({"id": begin["id"], "error": str(error)})
        inside.leave(1)
    inside.send({"id": begin["id"], "roots": roots, "sandbox": held, **contents.told})
    gc.collect()
    gc.freeze()  # what is loaded stays, and is not searched for garbage again and again
    inside.leave(_served(ActionHostChild(frames, contents, places)))


def _served(host: ActionHostChild) -> int:
    """Run the loop; 1 if the engine's code ended it, which is then told like a hang."""
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
