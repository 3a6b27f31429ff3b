"""However many connections of the owner's own stand idle, the command line gets through."""

import socket
from contextlib import ExitStack

from tests.integration.cli.cli_home import CliHome


def test_idle_connections_do_not_lock_the_command_line_out(live: CliHome) -> None:
    with ExitStack() as crowd:
        for _ in range(200):
            idle = crowd.enter_context(socket.socket(socket.AF_UNIX))
            idle.connect(str(live.path / "run" / "pulse.sock"))
        assert live.status()["daemon"]["state"] == "running"
        live.upulse("pause")
        assert live.status()["paused"] is not None
        live.upulse("resume")
