"""Asks live processes whether they serve: by HTTP, by a command, or by a connection. Each probe has one deadline."""

import asyncio
import socket
from functools import partial

from pulse_adapters.host.environment_file import environment_of
from pulse_adapters.host.listening_ports import (
    ListeningAddress,
    accepts_connections,
    is_of_this_machine,
    port_of,
    resolve_addresses,
)
from pulse_adapters.host.port_holders import PortHolders
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.workers.file_threads import FileThreads
from pulse_adapters.workers.users import expand_home
from pulse_core.model.errors import PulseError, describe_error
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.shortages import shortage
from pulse_core.ports.commands import CommandProber, CommandRequest
from pulse_core.ports.health import HealthAnswer
from pulse_core.ports.host import ProcessId
from pulse_core.ports.loops import TaskSet
from pulse_core.ports.prober import Prober, ProbeRequest, Trouble
from pulse_core.settings.probes import is_status_in
from pulse_core.settings.processes import ProcessSettings

LARGEST_BODY = 64 * 1024
HELD_S = 60.0
"""Seconds for which it is believed that a port is held by the process that was seen to hold it."""


class LocalHealthProber:
    """Implements `pulse_core.ports.HealthProber`.

    prober: asks by HTTP, in a child process; commands: runs those of `exec`.
    """

    def __init__(self, spawner: Spawner, prober: Prober, commands: CommandProber) -> None:
        self._spawner, self._prober, self._commands = spawner, prober, commands
        self._files = FileThreads()
        self._tasks = TaskSet[HealthAnswer]()
        self._ports = PortHolders()
        self._holders: dict[str, tuple[ProcessId, float]] = {}

    def ask(self, process: ProcessSettings, found: ProcessId | None) -> "asyncio.Future[HealthAnswer]":
        """Probe it in a task."""
        return self._tasks.begin(self._answer(process, found), f"probe {process.name}")

    async def close(self) -> None:
        """End all probes, and the commands that they run; their answers are cancelled."""
        await self._tasks.close()

    async def _answer(self, process: ProcessSettings, found: ProcessId | None) -> HealthAnswer:
        probes = {"http": self._http, "exec": self._exec, "unix": self._unix, "tcp": self._tcp}
        try:
            return await probes[process.probe or "tcp"](process, found)
        except Exception as error:  # noqa: BLE001 - a fault of the probe says nothing about the process
            return HealthAnswer(None, f"it could not be asked: {describe_error(error)}")

    async def _http(self, process: ProcessSettings, found: ProcessId | None) -> HealthAnswer:
        url = process.http or ""
        where = await resolve_addresses(port_of(process), self._spawner)
        if found is None and process.start:
            holder = await self._ports.stranger(where, None)
            return HealthAnswer(None, holder, holder)
        request = ProbeRequest(
            "http", url, process.timeout, local=True, largest=LARGEST_BODY, body=process.http_body or ""
        )
        answer = await self._prober.ask(request)
        if answer.trouble is Trouble.UNASKED:
            return HealthAnswer(None, f"it could not be asked: {answer.detail}")
        is_good = answer.trouble is None and is_status_in(process.http_status, answer.status or 0)
        if stranger := await self._stranger(process, found, where, is_good):
            return HealthAnswer(False, stranger, stranger)
        if is_good:
            return HealthAnswer(True, f"{url} answers {answer.status}")
        words = answer.detail if answer.trouble else f"it answered {answer.status}"
        return HealthAnswer(False, f"{url}: {words}")

    async def _exec(self, process: ProcessSettings, found: ProcessId | None) -> HealthAnswer:
        whose, env = f"probe:{process.name}", await environment_of(process, self._files)
        as_who = process.user, process.group
        result = await self._commands.ask(
            CommandRequest(whose, process.exec, process.timeout, process.cwd, env, *as_who)
        )
        return HealthAnswer(result.ok, result.words)

    async def _unix(self, process: ProcessSettings, found: ProcessId | None) -> HealthAnswer:
        path = expand_home(process.unix or "")
        try:
            await self._files.ask(path, partial(_connect, path))
        except BlockingIOError:
            return HealthAnswer(False, f"{path} takes no more connections: as many wait as it has room for")
        except PermissionError:
            return HealthAnswer(None, f"{path} may not be opened by the user Pulse runs as")
        except TimeoutError as error:
            return HealthAnswer(None, f"it could not be asked: {error}")
        except OSError as error:
            # Without a number it is Python's own: what `~` stands for makes the path too long for the kernel.
            if lacking := shortage(error) or (str(error) if error.errno is None else ""):
                return HealthAnswer(None, f"it could not be asked: {lacking}")
            return HealthAnswer(False, f"{path} takes no connections: {error.strerror}")
        return HealthAnswer(True, f"{path} takes connections")

    async def _tcp(self, process: ProcessSettings, found: ProcessId | None) -> HealthAnswer:
        address = process.tcp or ""
        where = await resolve_addresses(address, self._spawner)
        # Where there is no IPv6, nobody has `::1`, to which `localhost` leads, too.
        others = (one for one in where if one.host != "::1" and not is_of_this_machine(one))
        if found and (foreign := next(others, None)):
            raise PulseError(f"its name leads to {foreign.host}, which is no address of this machine")
        answers = await accepts_connections(where, _seconds(process))
        if stranger := await self._stranger(process, found, where, answers):
            return HealthAnswer(False, stranger, stranger)
        return HealthAnswer(answers, f"{address} {'answers' if answers else 'does not answer'}")

    async def _stranger(
        self,
        process: ProcessSettings,
        found: ProcessId | None,
        where: tuple[ListeningAddress, ...],
        good: bool,
    ) -> str:
        """Who holds its port in its place, in words; after good answers it is looked up once in a while."""
        if found is None:
            return ""
        name, now = process.name, asyncio.get_running_loop().time()
        seen, at = self._holders.get(name, (None, 0.0))
        if good and seen == found and now - at < HELD_S:
            return ""
        stranger = await self._ports.stranger(where, found, now if good else 0.0)
        self._holders.pop(name, None)
        if good and not stranger:  # where nobody answers, nobody may hold it yet
            self._holders[name] = found, now
        return stranger


def _seconds(process: ProcessSettings) -> float:
    return process.timeout / US_PER_SECOND


def _connect(path: str) -> None:
    # It never waits for a server: asyncio's sock_connect would, and take a socket without room for a connected one.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        probe.connect(path)
