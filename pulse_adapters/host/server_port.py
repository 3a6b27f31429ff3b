"""A port to serve at: taken before anything is written, opened once everything is there."""

import errno
import socket

from pulse_adapters.host.listening_ports import listening_inodes, numeric_addresses, socket_owners
from pulse_adapters.workers.proc import described
from pulse_core.model.errors import PulseError

BACKLOG = 128
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""The addresses that nobody needs a token for: only this machine reaches them."""


class PortBusy(PulseError):
    """Somebody else listens on this port."""

    exit_code = 3


def take_port(host: str, port: int) -> socket.socket:
    """A socket bound to this address, that does not listen yet; raises PortBusy, or PulseError if it can't be had."""
    taken = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
    except OSError as error:
        taken.close()
        raise _explained(error, host, port) from error
    return taken


def open_port(taken: socket.socket, host: str, port: int) -> str:
    """Let clients in; the beginning of the addresses at which they find what is served. Raises PortBusy if somebody else was
    quicker."""
    try:
        taken.listen(BACKLOG)
    except OSError as error:
        raise _explained(error, host, port) from error
    taken.setblocking(False)
    return f"http://{f'[{host}]' if ':' in host else host}:{taken.getsockname()[1]}"


def _explained(error: OSError, host: str, port: int) -> PulseError:
    if error.errno == errno.EADDRINUSE:
        return PortBusy(
            f"{host}:{port} is used by {_holder(host, port)}; end that, or choose another with --port"
        )
    return PulseError(f"{host}:{port} can't be used: {error.strerror}")


def _holder(host: str, port: int) -> str:
    """Who listens there, as far as this user may see it."""
    owners = socket_owners(listening_inodes(numeric_addresses(f"{host}:{port}")))
    return described(owners[0].pid) if owners else "another process"
