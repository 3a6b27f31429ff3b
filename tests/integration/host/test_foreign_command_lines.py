"""The arguments and the environment of a foreign process may hold secrets: nothing that is kept or shown has them."""

import asyncio
import json
import os
import signal
import socket
import sys
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.host.bundle import process_table_text
from pulse_adapters.host.command_prober import LocalCommandProber
from pulse_adapters.host.health_prober import LocalHealthProber
from pulse_adapters.host.memory_consumers import MemoryConsumers
from pulse_adapters.host.process_table import LinuxProcessTable
from pulse_adapters.host.server_port import PortBusy, take_port
from pulse_adapters.host.settings_doubts import doubts_of
from pulse_adapters.host.spawner import Spawner
from pulse_adapters.host.tree_usage import tree_usage
from pulse_adapters.network.prober import ChildProber
from pulse_adapters.workers.proc import program_name, read_stat
from pulse_core.ports.host import ProcessId
from pulse_core.settings.settings import Settings
from tests.integration.host.host_scene import said, until
from tests.long_form import sampled

SERVER = """
import os, socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print(os.getpid(), flush=True)
time.sleep(1000)
"""


@dataclass
class Scene:
    """A process of somebody else that listens, with secrets among its arguments and in its environment."""

    spawner: Spawner
    table: LinuxProcessTable
    stranger: ProcessId
    port: int
    word: str
    place: Path

    def settings(self, **more: Any) -> Settings:
        return Settings.model_validate({"process": [{"name": "it", "start": ["other"], **more}]})

    async def look(self, **more: Any) -> object:
        return await self.table.look(self.settings(**more).process, {})

    async def ask(self, **more: Any) -> object:
        child = ChildProber()
        prober = LocalHealthProber(self.spawner, child, LocalCommandProber(self.spawner, str(self.place)))
        me = await self.spawner.start(["sleep", "1000"], output=self.place / "me.log")
        try:
            return [await prober.ask(self.settings(**more).process[0], found) for found in (me, None)]
        finally:
            await prober.close()
            child.close()

    async def by_pid_file(self) -> object:
        path = self.place / "it.pid"
        path.write_text(str(self.stranger.pid))
        doubts = await doubts_of(self.settings(pid_file=str(path)).process)
        return doubts, await self.look(pid_file=str(path))

    async def by_match(self) -> object:
        processes = self.settings(match=self.word).process
        others = await self.table.others(processes, {"it": ProcessId(os.getpid(), 0)})
        return others, await doubts_of(processes), await self.look(match=self.word)

    async def as_consumer(self) -> object:
        settings = Settings.model_validate({"resources": {"stop": [self.word]}})
        told = await MemoryConsumers(lambda: settings, dict, lambda: ()).largest()
        assert [one["pid"] for one in told] == [self.stranger.pid]
        return told

    async def as_a_busy_port(self) -> object:
        with pytest.raises(PortBusy) as refused:
            take_port("127.0.0.1", self.port)
        return str(refused.value)

    async def in_a_bundle(self) -> object:
        return [line for line in process_table_text() if json.loads(line)["pid"] == self.stranger.pid]


WAYS: Mapping[str, Callable[[Scene], Awaitable[object]]] = {
    "looked for at its port": lambda scene: scene.look(tcp=f"127.0.0.1:{scene.port}"),
    "asked at its port": lambda scene: scene.ask(tcp=f"127.0.0.1:{scene.port}"),
    "asked by HTTP": lambda scene: scene.ask(http=f"http://127.0.0.1:{scene.port}/", timeout="300ms"),
    "found by match": Scene.by_match,
    "named by a PID file": Scene.by_pid_file,
    "as a consumer of memory": Scene.as_consumer,
    "as the holder of a port that Pulse wants": Scene.as_a_busy_port,
    "in a support bundle": Scene.in_a_bundle,
}


@pytest.mark.parametrize("way", sampled(WAYS, 2))
async def test_nothing_that_is_told_of_a_stranger_has_its_arguments_or_its_environment(
    way: str, spawner: Spawner, table: LinuxProcessTable, log: Path, tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    word = f"w{uuid.uuid4().hex}"
    secrets = ("s3cr3tTO", "s3cr3tPW", "s3cr3tENV")
    argv = [sys.executable, "-c", SERVER, str(port), word, "--token=s3cr3tTO", "--password", "s3cr3tPW"]
    leave = ["sh", "-c", f'mkdir -p {log.parent}; setsid "$@" > {log} &', "sh"]  # none of our own descendants
    await spawner.run([*leave, *argv], timeout=60, env={"API_KEY": "s3cr3tENV"})
    await until(lambda: said(log))
    seen = read_stat(int(said(log)))
    assert seen
    stranger = seen.found
    told = repr(await WAYS[way](Scene(spawner, table, stranger, port, word, tmp_path)))
    assert str(stranger.pid) in told
    assert not [secret for secret in secrets if secret in told]


async def test_a_title_that_a_process_gave_itself_is_told_to_its_first_word(
    spawner: Spawner, log: Path
) -> None:
    title = "/opt/bin/agent --token=s3cr3tTO run"
    argv = ["bash", "-c", f"exec -a '{title}' sleep 1000"]
    found = await spawner.start(argv, output=log)
    await until(lambda: program_name(found.pid) == "agent")  # and not of who is to execute it any more
    assert "s3cr3t" not in repr(tree_usage(found.pid))
    os.kill(found.pid, signal.SIGKILL)
    await asyncio.sleep(0)
