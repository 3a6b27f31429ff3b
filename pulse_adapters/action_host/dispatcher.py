"""Runs calls in the child: each within its time, and whatever is raised becomes an answer."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from pulse_adapters.action_host.loader import ActionContents, describe_policy
from pulse_adapters.action_host.replies import MOST_BYTES
from pulse_adapters.workers.framing import MOST_COMMAS, Message
from pulse_adapters.workers.messages import parse
from pulse_adapters.workers.source_locations import Places, describe_error, error_message, with_place
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.model.payload import describe
from pulse_core.model.vitals import Reading, Sample, Window
from pulse_core.ports.executor import GivenUp, Result, Unsure

_WORDS = 2_000


class ResultTooLarge(Exception):
    """Data that exceeds the size that is kept."""


class CallDispatcher:
    """Answers requests to an engine's watchers and executors."""

    def __init__(self, contents: ActionContents, places: Places) -> None:
        self._contents, self._places = contents, places
        self._windows: dict[str, Window] = {}

    def take(self, request: Message) -> None:
        """Take the samples that a request brings, whatever becomes of it: each is sent once."""
        for id_, moment, known in request.get("fresh", ()):
            window = self._windows.get(request["name"], Window())
            self._windows[request["name"]] = window.plus(Sample(id_, request["key"], Moment(*moment), known))

    async def answer(self, request: Message) -> Message:
        """The result, or what went `wrong` and why. Raises nothing."""
        timer = asyncio.timeout(request.get("seconds"))
        try:
            async with timer:
                return await self._done(request)
        except BaseException as error:  # noqa: BLE001 - somebody else's code, which may raise what it likes
            return self._wrong(error, request, timer.expired())

    async def _done(self, request: Message) -> Message:
        match request["do"]:
            case "collect":
                return await self._collect(request)
            case "nudged":
                return {"names": await self._nudged()}
            case "policy":
                executor = self._contents.executors[request["name"]]
                policy = executor.policy(_params(executor, request["params"]))
                return {"policy": describe_policy(policy)}
            case verb:
                return await self._act(request, verb == "verify")

    # Watchers

    async def _collect(self, request: Message) -> Message:
        watcher = self._contents.watchers[request["name"]]
        began = time.monotonic()
        if request["nudged"]:
            watcher.nudge.clear()
        reading = await watcher.collect()
        if not isinstance(reading, Reading):
            raise TypeError(f"a watcher brings back a Reading, not {type(reading).__name__}")
        data = _plain(reading.data)
        window = self._window(request, data, round((time.monotonic() - began) * 1e6))
        return {
            "data": data,
            "wake": bool(watcher.should_wake(window)),
            "dropped": len(reading.conclusions),
        }

    def _window(self, request: Message, data: Mapping[str, Any], took_us: int) -> Window:
        """The window as the daemon will have it, including the new sample."""
        window = self._windows.get(request["name"], Window())
        at, boot, mono = request["now"]
        newest = window.last.id + 1 if window.last else 1
        return window.plus(Sample(newest, request["key"], Moment(at + took_us, boot, mono + took_us), data))

    async def _nudged(self) -> Sequence[str]:
        """Wait until a watcher wants to be collected; the names of all that do."""
        events = {
            name: one.nudge
            for name, one in self._contents.watchers.items()
            if isinstance(getattr(one, "nudge", None), asyncio.Event)
        }
        waits = [asyncio.ensure_future(event.wait()) for event in events.values()]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        names = [name for name, event in events.items() if event.is_set()]
        for name in names:
            events[name].clear()
        return names

    # Executors

    async def _act(self, request: Message, looks: bool) -> Message:
        executor = self._contents.executors[request["name"]]
        effect = Effect.model_validate(request["effect"])
        event = Event(*request["event"])
        params = _params(executor, effect.params)
        if looks:
            result = await executor.verify(effect, params, event)
        else:
            try:
                executor.check(params)
            except PulseError as error:
                raise GivenUp(error_message(error)) from None
            result = await executor.execute(effect, params, event)
        if looks and result is None:
            return {"data": None}
        if not isinstance(result, Result):
            raise TypeError(f"an executor answers with a Result, not {type(result).__name__}")
        return {"data": _plain(result.data)}

    # Failures

    def _wrong(self, error: BaseException, request: Message, is_late: bool) -> Message:
        cause = error.__cause__ if is_late and isinstance(error, TimeoutError) else error
        if not (place := self._places.of_error(cause or error)):
            things = self._contents.watchers if request["do"] == "collect" else self._contents.executors
            method = getattr(things.get(str(request.get("name"))), request["do"], None)
            place = self._places.of_code(method)
        if is_late:
            return {"wrong": "late", "words": with_place("", place).strip()}
        if isinstance(error, asyncio.CancelledError):
            return {"wrong": "cancelled", "words": with_place("it cancelled itself", place)}
        if isinstance(error, PulseError | Unsure):
            way = {GivenUp: "given-up", Unsure: "unsure"}.get(type(error), "failed")
            return {"wrong": way, "words": error_message(error)[:_WORDS]}
        return {"wrong": "broken", "words": with_place(describe_error(error), place)[:_WORDS]}


def _params(executor: Any, params: Mapping[str, Any]) -> Any:
    """The params validated by the author's own model. Raises GivenUp."""
    try:
        return executor.params.model_validate(params)
    except ValidationError as error:
        raise GivenUp(f"params of {executor.action}: {describe(error)}") from None


def _plain(data: Any) -> dict[str, Any]:
    """The data as plain JSON values. Raises ResultTooLarge, or what is wrong with it."""
    if not isinstance(data, Mapping):
        raise TypeError(f"its data are no mapping but {type(data).__name__}")
    text = json.dumps(dict(data), allow_nan=False, ensure_ascii=False).encode()
    if len(text) > MOST_BYTES:
        raise ResultTooLarge(f"its data take {len(text):,} bytes as JSON; at most {MOST_BYTES:,} are taken")
    if (commas := text.count(b",")) > MOST_COMMAS:
        raise ResultTooLarge(f"its data have {commas:,} commas as JSON; at most {MOST_COMMAS:,} are taken")
    return parse(text)
