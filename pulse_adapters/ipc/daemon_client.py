"""The daemon of a home, asked over its socket."""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import cast

from pulse_adapters.ipc.client import Client, Say, silent
from pulse_adapters.ipc.daemon_failure import read_failure
from pulse_adapters.ipc.lock import holder
from pulse_core.home import HomeLayout
from pulse_core.model.home_status import FailedDaemon, HomeStatus, LockHolder
from pulse_core.model.json_types import Json


def own_run_socket(home: Path) -> Path | None:
    """Where a run of an agent of this home is answered that may not enter it; None for everybody else."""
    said = os.environ
    if said.get("UPULSE_HOME") != str(home) or not said.get("PULSE_TOKEN") or os.access(home, os.X_OK):
        return None
    return Path(said["PULSE_SOCKET"]) if said.get("PULSE_SOCKET") else None


STATUS_WAIT = 2.0
"""Seconds after which a daemon that does not tell its status counts as not answering."""


class SocketDaemonClient:
    """`DaemonClient` over the socket and the lock of a home; each verb has a connection of its own.

    say: hears that it waits its turn. said_token: what it says with each request; None: what the environment has for it.
    """

    def __init__(self, layout: HomeLayout, say: Say = silent, said_token: str | None = None) -> None:
        self._layout, self._say, self._said_token = layout, say, said_token
        self._socket = own_run_socket(layout.path) or layout.socket

    def status(self) -> HomeStatus:
        with Client(self._socket, STATUS_WAIT, self._say) as client:
            return cast(HomeStatus, client.ask("status", **self._token()))

    def append(self, draft: Mapping[str, Json]) -> tuple[Mapping[str, Json], bool]:
        with Client(self._socket, say=self._say) as client:
            event = dict(client.ask("append", drafts=[draft], **self._token())["events"][0])
        return event, bool(event.pop("existing"))

    def shown(self) -> Mapping[str, Json]:
        with Client(self._socket, say=self._say) as client:
            return cast(Mapping[str, Json], client.ask("state", **self._token())["value"])

    def follow(
        self, since: int, kinds: Collection[str] = (), *, brief: bool = False, patience: float = 10.0
    ) -> Iterator[Mapping[str, Json]]:
        with Client(self._socket, patience, self._say) as client:
            for item in client.stream("follow", since=since, kinds=sorted(kinds), brief=brief):
                yield item["event"]

    def _token(self) -> Mapping[str, str]:
        """What a run of an agent of this home says with each request."""
        if self._said_token is not None:
            return {"token": self._said_token} if self._said_token else {}
        is_own = os.environ.get("UPULSE_HOME") == str(self._layout.path)
        return {"token": token} if is_own and (token := os.environ.get("PULSE_TOKEN")) else {}

    def lock_holder(self) -> LockHolder | None:
        return holder(self._layout.lock)

    def lost_holder(self, log: str) -> LockHolder | None:
        from pulse_adapters.ipc.log_name import holder_begun_at  # most commands find the daemon, or its lock

        pid = holder_begun_at(self._layout.path, log)
        return LockHolder(pid, "", 0, "") if pid else None

    def daemon_of_original(self, log: str) -> tuple[int, str] | None:
        from pulse_adapters.ipc.log_name import holder_elsewhere  # likewise

        return holder_elsewhere(self._layout.path, log)

    def last_failure(self) -> FailedDaemon | None:
        return read_failure(self._layout.failure)
