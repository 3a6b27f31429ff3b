"""The name of a log on this machine, which one daemon holds: that of a copied home would guard the same processes again.

It is an abstract socket, which the kernel takes back from whoever dies, and no disk is asked. Other users could hold it
first: so only a daemon of this user counts.
"""

import asyncio
import errno
import os
import socket
import struct
import time

from pulse_core.model.errors import PulseError

_STEP = 0.02
_BACKLOG = 4_096


async def hold_name(home: str, log: str, wait: float) -> socket.socket:
    """Hold the name until the socket is closed. wait: seconds that another daemon is given to end.

    Raises PulseError if a daemon of this user holds it.
    """
    name, until = f"\0pulse-{os.geteuid()}-{log}", time.monotonic() + wait
    while True:
        own = socket.socket(socket.AF_UNIX)
        try:
            own.bind(name)
            own.listen(_BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or (pid := _holder(name)) is None:
                return own  # of no use; but nobody's daemon is kept from what it is for
            own.close()
        else:
            return own
        if time.monotonic() >= until:
            raise PulseError(
                f"{home} is a copy of a home whose daemon runs, as process {pid}, and both would start the same "
                "processes; end that one first, or make another home (upulse init)"
            )
        await asyncio.sleep(_STEP)


def _holder(name: str) -> int | None:
    """The process of this user that holds a name; None if nobody can be said to."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.setblocking(False)
        try:
            asked.connect(name)
        except OSError:
            return None
        pid, uid, _ = struct.unpack("3i", asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid if uid == os.geteuid() else None
