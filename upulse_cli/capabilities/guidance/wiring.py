"""Guidance over its real adapters: its server, and what the log of a home holds of it, read beside the daemon or without."""

import asyncio
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from itertools import takewhile
from socket import socket
from typing import TYPE_CHECKING

from pulse_adapters.guidance.disk_project_files import DiskProjectFiles
from pulse_core.app.append import append_all
from pulse_core.app.state import BATCH, checkpoints_of, foldable, resumed
from pulse_core.guidance.events import GuidanceChanged, GuidanceImported
from pulse_core.guidance.projection import GUIDANCE, Guidance, changes_in
from pulse_core.guidance.protocol import ENDPOINT, EVENT_ID, Change, row_id
from pulse_core.guidance.service import GuidanceService
from pulse_core.model.batches import in_batches
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.model.event import Draft, Head
from pulse_core.model.text import count
from pulse_core.ports.readers import EventQuery
from pulse_core.projections.fold import Fold

if TYPE_CHECKING:
    from pulse_core.app.context import HomeContext
    from pulse_core.ports.readers import EventReader

FOLD = Fold((GUIDANCE,))
CHANGES = (GuidanceImported.kind, GuidanceChanged.kind)


class RecordedGuidance:
    """`GuidanceLog` of a home, for one thread. It stays open, and folds what is new; `close` ends that."""

    def __init__(self, home: "HomeContext") -> None:
        self._home = home
        self._opened = ExitStack()
        self._reader: EventReader | None = None
        self._inode, self._head, self._state = 0, Head(), FOLD.start
        self.find = lru_cache(1_000)(self._found)

    def close(self) -> None:
        self._opened.close()
        self._reader = None

    def state(self) -> Guidance:
        """How it stands now; from its beginning on if the log is another one than before."""
        log = self._log()
        head = log.head()
        if head != self._head:
            if not self._head.seq or log.chain_at(self._head.seq) != self._head.chain:
                self._state = resumed(log, checkpoints_of(self._home, log), fold=FOLD)
            query = EventQuery(since_seq=self._state.seq, kinds=tuple(FOLD.kinds))
            for batch in in_batches(takewhile(lambda event: event.seq <= head.seq, log.events(query)), BATCH):
                self._state = FOLD(self._state, [foldable(event) for event in batch])
            self._state, self._head = FOLD(self._state, (), upto=head.seq), head
        return self._state.of(GUIDANCE)

    def append(self, *drafts: Draft) -> None:
        """Record them through the daemon, or without one."""
        spelled = [
            {
                "kind": draft.payload.kind,
                "subject": draft.subject,
                "data": draft.payload.model_dump(mode="json", exclude_defaults=True),
                "cause": draft.cause,
                "id": draft.id or self._home.new_id(),
            }
            for draft in drafts
        ]
        append_all(self._home, spelled)

    def changes(self, root: str) -> Iterator[Change]:
        """All that the projection counts too, in order."""
        count = 0
        for event in self._log().events(EventQuery(kinds=CHANGES, subject=root)):
            for change in changes_in(foldable(event)):
                if change.number > count:
                    count = change.number
                    yield change

    def _found(self, root: str, event_id: str) -> Change | None:
        """The change of this id, by the id of its row; of an imported one, where it was imported."""
        log = self._log()
        if EVENT_ID.fullmatch(event_id):
            with suppress(UnknownName):
                event = foldable(log.event(row_id(root, event_id)))
                return next((one for one in changes_in(event) if one.id == event_id), None)
        project = self._state.of(GUIDANCE).projects.get(root)
        if project is None or not project.imports:
            return None
        query = EventQuery(kinds=(GuidanceImported.kind,), subject=root)
        for event in log.events(query, limit=project.imports):
            if found := next((one for one in changes_in(foldable(event)) if one.id == event_id), None):
                return found
        return None

    def _log(self) -> "EventReader":
        inode = os.stat(self._home.layout.events).st_ino
        if self._reader is None or inode != self._inode:
            self.close()
            self._inode, self._head = inode, Head()
            self._reader = self._opened.enter_context(self._home.events())
            self.find.cache_clear()
        return self._reader


def require_mcp() -> None:
    """Raise PulseError without the package that an MCP server needs."""
    if find_spec("mcp") is None:
        raise PulseError("the MCP server needs the package mcp; install it with: pip install 'upulse[mcp]'")


def project_root(project: str) -> str:
    """The folder that is meant, as its real path; raises PulseError if it is none, or has an unusable name."""
    path = os.path.realpath(os.path.expanduser(project))
    if not os.path.isdir(path):
        raise PulseError(f"{path} is no folder")
    if not path.isprintable() or len(path) > 400:
        raise PulseError(f"{path!r} is no usable path: at most 400 printable characters")
    return path


@contextmanager
def guided(home: "HomeContext") -> Iterator[GuidanceService]:
    """The service of a home, for one command."""
    service, log = guidance_service(home)
    with closing(log):
        yield service


def guidance_service(home: "HomeContext") -> tuple[GuidanceService, RecordedGuidance]:
    """The service of a home, and its log, to be used by one thread."""
    log = RecordedGuidance(home)
    files = DiskProjectFiles()
    return GuidanceService(log, files, lambda: home.clock.now().at, lambda: secrets.token_hex(4)), log


@contextmanager
def port_taken(host: str, port: int, token: str | None) -> Iterator[tuple[socket, str | None]]:
    """A port that is taken, but not yet open, and the token; a Ctrl-C ends what is done with them.

    Raises PortBusy, or PulseError without the package, or for an address that others reach if there is no token.
    """
    require_mcp()
    from pulse_adapters.host.server_port import LOOPBACK, take_port

    kind, _, name = (token or "").partition(":")
    secret = os.environ.get(name) if kind == "env" else None
    if token is not None and not secret:
        raise PulseError(f"--token is env:NAME of a variable that holds the token; {token!r} is not")
    if secret is None and host not in LOOPBACK:
        raise PulseError(f"{host} may be reached from elsewhere; say --token env:NAME, or use 127.0.0.1")
    with take_port(host, port) as taken, suppress(KeyboardInterrupt):
        yield taken, secret


def serve_project(
    project: str, host: str, port: int, token: str | None, home: str | None, say: Callable[[str], None]
) -> None:
    """Serve one project's guidance until a signal comes. The port is taken before anything is written."""
    root = project_root(project)
    with port_taken(host, port, token) as (taken, secret):
        from pulse_adapters.guidance.mcp_server import GuidanceServer
        from pulse_adapters.host.server_port import LOOPBACK, open_port
        from pulse_adapters.mcp_http.http_server import RequireToken, beside, serve, stateless_app
        from upulse_cli.wiring.home import found_or_new_home

        service, _ = guidance_service(found_or_new_home(home))
        server = GuidanceServer(service, lambda: root)
        if unread := server.in_thread(lambda: service.begin(root)):
            words = "could not be read; all others were taken over"
            say(f"{count(unread, 'line')} of {root}/.pulse/events.jsonl {words}.")
        address = open_port(taken, host, port)
        say(f"Watching {root}/.pulse")
        say(f"MCP endpoint: {address}{ENDPOINT}")
        app = stateless_app(server.mcp(), ENDPOINT, host in LOOPBACK)

        async def run() -> None:
            async with beside(server.watch(root, say)):
                await serve(RequireToken(app, secret) if secret else app, taken, app)

        asyncio.run(run())
        server.close()
