"""Write the golden home of this release: `python -m tests.golden.make_home`. Never touches those of earlier ones.

A daemon lives in it for some seconds: a death and its restart, a condition, a matched line, a silence, a promote with a
rule and a projection of its own, a commanded stop. What the home must say for ever is written beside it.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

from pulse_core import __version__

HOMES = Path(__file__).parent / "homes"
WORKPLACE = Path("/tmp/pulse-golden")
LEFT_OUT = {"run", "cache", "revisions", "daemon.log", "logs"}
SETTINGS = f"""
[[process]]
name = "sleeper"
start = ["sleep", "86400"]

[[llm]]
url = "http://127.0.0.1:9/v1/models"
interval = "500ms"
evidence = 2
grace = "1s"

[[log]]
path = "{WORKPLACE}/agent.log"
keywords = ["ERROR"]
match = ["lost (its|the) way"]
"""


def unpack_home(release: str, path: Path) -> None:
    """Lay out the home of a release, as if its daemon had just ended."""
    with tarfile.open(HOMES / f"{release}.tar.xz") as archive:
        # Debian 12's Python 3.11.2 knows no filter yet; later ones warn without one.
        safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(path, **safely)
    path.chmod(0o700)
    (path / "run").mkdir(mode=0o700)


def upulse(home: Path, *words: str) -> str:
    """What the command prints; raises CalledProcessError if it fails."""
    argv = [sys.executable, "-m", "upulse_cli", *words, "--home", str(home)]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120).stdout


def live(home: Path) -> None:
    """Let a daemon live through what this home is to remember."""
    upulse(home, "init")
    config, log = home / "config.toml", WORKPLACE / "agent.log"
    allowed = config.read_text().replace("#allow = []", 'allow = ["/bin/true"]', 1)
    config.write_text(allowed + SETTINGS)
    log.touch()
    upulse(home, "daemon", "start")
    upulse(home, "new", "rule", "count-the-sleepers")
    upulse(home, "new", "projection", "seen-deaths")
    upulse(home, "promote", "-m", "A rule of our own")
    upulse(home, "silence", "add", "run-command:nightly*", "--for", "30d", "--why", "maintenance")
    upulse(home, "effect", "add", "run-command", "--key", "once", "--param", 'argv=["/bin/true"]', "--wait")
    log.write_text("ERROR the agent lost its way\n")
    (process,) = json.loads(upulse(home, "status", "--json"))["processes"]
    os.kill(process["pid"], signal.SIGKILL)
    time.sleep(5)  # restarted, and the endpoint that nobody serves is known to be down
    upulse(home, "process", "stop", "sleeper", "--why", "it rests")
    time.sleep(2)


def promises(home: Path) -> dict[str, object]:
    """What every later release must find in this home: each event's id, and the engine that is in force."""
    engine = json.loads(upulse(home, "status", "--json"))["engine"]
    lines = upulse(home, "events", "--json").splitlines()
    return {
        "events": [json.loads(line)["id"] for line in lines],
        "engine": {"commit": engine["commit"], "rules": engine["rules"]},
        "process": "sleeper",
    }


def main() -> None:
    """Make the home of this release, unless there is one."""
    packed = HOMES / f"{__version__}.tar.xz"
    if packed.exists():
        sys.exit(f"{packed} is kept for ever; a new release has a new one")
    shutil.rmtree(WORKPLACE, ignore_errors=True)
    home = WORKPLACE / "home"
    WORKPLACE.mkdir()
    try:
        live(home)
        kept = promises(home)
    finally:
        upulse(home, "daemon", "stop")
    HOMES.mkdir(exist_ok=True)
    with tarfile.open(packed, "w:xz") as archive:
        for path in sorted(home.iterdir()):
            if path.name not in LEFT_OUT:
                archive.add(path, path.name)
    (HOMES / f"{__version__}.json").write_text(json.dumps(kept, indent=1) + "\n")
    shutil.rmtree(WORKPLACE)


if __name__ == "__main__":
    main()
