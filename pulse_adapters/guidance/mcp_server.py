"""The MCP server of a project's guidance: a resource, two tools and a prompt."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError

from pulse_adapters.guidance.watcher import FileWatch
from pulse_adapters.workers.threads import Pool
from pulse_core.guidance.answers import REPLAN
from pulse_core.guidance.protocol import CONTEXT_URI
from pulse_core.guidance.service import GuidanceService
from pulse_core.model.errors import PulseError, describe_error
from pulse_core.ports.loops import wait_within

T = TypeVar("T")
LOOK_S = 10.0
"""Seconds between two looks where inotify says nothing."""


class ProtocolServer(MCPServer[Any]):
    """Refuses an acknowledgement without an id, or with one that is no text, in the words of the protocol, too."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> Any:
        if name == "pulse_ack_replan":
            said = arguments.get("event_id")
            arguments = {**arguments, "event_id": "" if said is None else str(said)}
        return await super().call_tool(name, arguments, context)


class GuidanceServer:
    """Answers agents. root: of the project that the present request is about."""

    def __init__(self, service: GuidanceService, root: Callable[[], str]) -> None:
        self._service, self._root = service, root
        # One thread: it has the connection to the log, and everybody waits for the log anyway.
        self._thread = Pool(1, "guidance")

    def in_thread(self, work: Callable[[], T]) -> T:
        """Do this in the thread in which all calls are answered."""
        return self._thread.submit(work).result()

    def close(self) -> None:
        self._thread.shutdown()

    def mcp(self) -> "MCPServer[Any]":
        """What there is to ask."""
        server = ProtocolServer("PulseAgent", log_level="ERROR", subscriptions=False)

        @server.resource(CONTEXT_URI, mime_type="text/plain")
        async def latest_context() -> str:
            """The task, the guidance, the constraints and the plan as they are now, and what has changed last."""
            return await self._answered(self._service.context)

        @server.tool(structured_output=False)
        async def pulse_should_interrupt(last_seen_event_id: str | None = None) -> str:
            """Whether to stop and replan, since guidance or constraints have changed. Ask before you go on with long work.

            last_seen_event_id: the latest_event_id of the answer before; it affects has_new_events and changed_files alone.
            """
            found = await self._answered(self._service.should_interrupt, last_seen_event_id)
            return json.dumps(found, indent=2)

        @server.tool(structured_output=False)
        async def pulse_ack_replan(event_id: str) -> str:
            """Acknowledge that the plan was revised for the pending change of guidance or constraints.

            event_id: the pending_replan_event_id of pulse_should_interrupt.
            """
            return json.dumps(await self._answered(self._service.acknowledge, event_id), indent=2)

        @server.prompt()
        def pulse_replan() -> str:
            """What to do before going on, and how to replan."""
            return REPLAN

        return server

    async def _asked(self, method: Callable[..., T], *values: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, method, *values)

    async def _answered(self, method: Callable[..., T], *values: Any) -> T:
        """For a client: it is told why there is no answer."""
        try:
            return await self._asked(method, self._root(), *values)
        except PulseError as error:
            raise ResourceError(str(error)) from error

    async def watch(self, root: str, say: Callable[[str], None]) -> None:
        """Look at a project whenever a file has changed, and now and then; what can't be recorded is tried again.

        say: hears what went wrong.
        """
        changed, told = asyncio.Event(), ""
        watch = FileWatch(lambda root: changed.set())
        try:
            while True:
                watch.keep((root,))
                changed.clear()
                try:
                    await self._asked(watch.watch, root)
                    await self._asked(self._service.look, root)
                    told = ""
                except (PulseError, OSError) as error:
                    if (words := describe_error(error)) != told:
                        say(told := words)
                await wait_within(changed, LOOK_S)
        finally:
            watch.close()
