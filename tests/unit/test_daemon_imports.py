"""A daemon has in memory what it uses: what looks after things that its home doesn't have is not imported."""

import subprocess
import sys
from pathlib import Path

UNUSED = {
    "pulse_adapters.agents.disk_run_files",
    "pulse_adapters.checks.file_status",
    "pulse_adapters.guidance.watcher",
    "pulse_adapters.ipc.client",
    "pulse_core.agents.executors",
    "pulse_core.agents.watcher",
    "pulse_core.checks.watcher",
    "pulse_core.guidance.service",
}

LIFE = """
import asyncio, sys
from pathlib import Path
from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.open_log import Opening
from upulse_cli.wiring.daemon import real_daemon


async def life():
    stop = asyncio.Event()
    stop.set()
    async with real_daemon(home, Opening()) as daemon:
        await daemon.run(stop, lambda: print("restored"))


home = Home(Path(sys.argv[1]))
home.create()
home.config.write_text("[watch]\\n")
asyncio.run(life())
print(*sys.modules)
"""


def test_a_daemon_of_a_plain_home_imports_nothing_for_what_it_does_not_have(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", LIFE, str(tmp_path / "home")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    restored, *modules = done.stdout.split()
    assert restored == "restored"
    assert "pulse_core.watch.on_demand" in modules
    assert UNUSED & set(modules) == set()
