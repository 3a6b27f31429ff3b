"""The daemon's socket as a service: callers get answers for as long as the daemon lives."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pulse_adapters.ipc.peer import Peer, group_id
from pulse_adapters.ipc.server import Answer, Handler, remove_empty, serve, serve_without_file
from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.home_folder import HomeFolder
from pulse_adapters.workers.read_only import NO_NEW_FILE, why_no_new_file
from pulse_adapters.workers.users import user_name
from pulse_core.capability import Scopes
from pulse_core.daemon import Caller, CurrentSettings, RequestHandler
from pulse_core.home import HomeLayout
from pulse_core.model.errors import PulseError, Refused
from pulse_core.model.json_types import Json
from pulse_core.model.payload import Role
from pulse_core.ports.loops import coalesced
from pulse_core.settings.settings import SocketSettings

RETRY = 5.0
RETRY_GROUPS = 60.0
LOOK = 3.0


@dataclass(frozen=True)
class SocketService:
    """Serves the socket of a home where the settings want it: a `Service` of the daemon.

    settings_faults: those that the settings had at the start, told in the status; without_group: what is said of a
    socket whose group this machine has lost; failed: hears what could not be done; scope: what a caller is bound to.
    """

    home: HomeLayout
    current_settings: CurrentSettings
    settings_faults: Sequence[str]
    without_group: str
    failed: Callable[[str, str], None]
    scope: Scopes

    async def __call__(self, request_handler: RequestHandler, begun: Callable[[], None]) -> None:
        """Serve until cancelled; if that cannot be done, say so and try again: survival never needs it."""
        report, faults = request_handler.report, list(self.settings_faults)
        files = FileThreads(in_child=False)
        if faults:
            request_handler = replace(request_handler, report=lambda: {**report(), "settings_faults": faults})
        while True:
            try:
                async with AsyncExitStack() as opened:
                    opened.callback((folder := HomeFolder(self.home.path)).close)
                    settings = self.current_settings().socket
                    group = await self._known_group(settings.group)
                    await opened.enter_async_context(self._served(request_handler, settings, group))
                    mine = os.stat(self.home.socket)
                    begun()
                    while await self._is_there(mine, folder, files):  # noqa: ASYNC110
                        await asyncio.sleep(coalesced(LOOK))
                self.failed("socket", "its file was removed or replaced; it is made again")
            except (PulseError, OSError) as error:
                self.failed("socket", str(error))
                if not await self._serve_without_file(request_handler, begun, error):
                    begun()
                    await asyncio.sleep(RETRY)

    async def _is_there(self, mine: os.stat_result, folder: HomeFolder, files: FileThreads) -> bool:
        """Whether callers can find the socket: one that is removed or replaced tells nobody; a disk that fails says nothing.

        With a home that was moved the socket was moved, too.
        """
        home, socket = self.home.path, self.home.socket

        def look() -> bool:
            with suppress(FileNotFoundError, NotADirectoryError):
                if os.path.samestat(mine, os.stat(socket)):
                    return True
            return folder.was_moved() or not home.exists()

        try:
            return await files.ask(str(socket), look)
        except OSError:
            return True

    async def serve_groups(self, request_handler: RequestHandler, groups: Mapping[Path, int]) -> None:
        """Answer at each of these sockets, too, for the members of a group: nobody there but who says a token."""
        answers, on_error = self._answers(request_handler, needs_token=True), self._on_error
        while True:
            try:
                async with AsyncExitStack() as opened:
                    for path, group in groups.items():
                        opened.callback(remove_empty, path.parent)
                        served = serve(path, answers, owner=os.geteuid(), on_error=on_error, group=group)
                        await opened.enter_async_context(served)
                    await asyncio.Event().wait()
            except (PulseError, OSError) as error:
                self.failed("socket", str(error))
                await asyncio.sleep(RETRY_GROUPS)

    async def _serve_without_file(
        self, request_handler: RequestHandler, begun: Callable[[], None], fault: Exception
    ) -> bool:
        """Serve the home's user and root for as long as no file can be made there; False if that is not the fault."""
        cause = fault.__cause__ if isinstance(fault, PulseError) else fault
        if not isinstance(cause, OSError) or cause.errno not in NO_NEW_FILE:
            return False
        answers, on_error = self._answers(request_handler), self._on_error
        owner = os.stat(self.home.path).st_uid
        try:
            async with serve_without_file(self.home.socket, answers, owner=owner, on_error=on_error):
                begun()
                while why_no_new_file(self.home.run):  # noqa: ASYNC110 - as above
                    await asyncio.sleep(LOOK)
                return True
        except PulseError as error:
            self.failed("socket", str(error))
            return False

    def _served(
        self, request_handler: RequestHandler, settings: SocketSettings, group: int | None
    ) -> AbstractAsyncContextManager[None]:
        path = Path(settings.directory) / "pulse.sock" if settings.directory else self.home.socket
        owner = os.stat(self.home.path).st_uid
        answers, on_error = self._answers(request_handler), self._on_error
        return serve(path, answers, owner=owner, on_error=on_error, group=group, sign=self.home.socket)

    def _answers(self, request_handler: RequestHandler, needs_token: bool = False) -> Handler:
        async def answer(peer: Peer, request: Mapping[str, Json]) -> Answer:
            token = str(request.get("token") or "")
            try:
                scope = await self.scope(peer.pid, peer.uid, token)
            except TimeoutError as error:
                raise PulseError(f"the token can't be read: {error}") from error
            except Refused as error:
                if token:
                    self.failed("socket", str(error))
                raise
            if needs_token and scope is None:
                raise Refused("here nobody is answered but a run of an agent, by its token")
            caller = (
                Caller(Role.AGENT, scope.actor, scope) if scope else Caller(peer.role, user_name(peer.uid))
            )
            answers = request_handler.answer(caller, request)
            try:
                async for one in answers:
                    yield one
            finally:
                if isinstance(answers, AsyncGenerator):
                    await answers.aclose()

        return answer

    def _on_error(self, error: Exception) -> None:
        self.failed("socket", f"{type(error).__name__}: {error}")

    async def _known_group(self, name: str | None) -> int | None:
        """The socket's group; if this machine has lost it, that is said, and the socket is for its owner alone.

        Asked in a thread, which has the patience that the loop has not: nobody asks again.
        """
        try:
            return None if name is None else await asyncio.to_thread(group_id, name)
        except (PulseError, OSError) as error:
            self.failed("socket", f"{error}; {self.without_group}")
            return None
