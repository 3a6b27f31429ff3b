"""Writes a diagnostic bundle: `python -m upulse_cli.bundle --home H --name N`. Prints what it wrote as JSON.

In it: the state, the last events, ticks and an hour of vitals, the process table, the ends of the logs, the
settings with secrets hidden. Not in it: anybody's environment, and the contents of other files.
"""

import argparse
import io
import json
import os
import platform
import sqlite3
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from pulse_adapters.config.file import load
from pulse_adapters.config.home import Home
from pulse_adapters.config.toml_writer import show
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_core import __version__
from pulse_core.app.status import home_status
from upulse_cli.wiring.home import home_context

EVENTS, TICKS, TAIL = 2_000, 500, 256 * 1024
HOUR_US = 3_600_000_000
KEPT = 10
SYSTEM = ("meminfo", "loadavg", "uptime", "mounts", "pressure/cpu", "pressure/memory", "pressure/io")


def main() -> int:
    """Write the bundle, and let the oldest go."""
    parser = argparse.ArgumentParser(prog="upulse_cli.bundle", description=__doc__)
    parser.add_argument("--home", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--why", default="")
    options = parser.parse_args()
    os.nice(10)
    home = Home(Path(options.home))
    directory = home.path / "bundles"
    directory.mkdir(mode=0o700, exist_ok=True)
    path, missing = written(home, directory / f"{options.name}.tar.gz", options.why)
    forget_oldest(directory)
    print(json.dumps({"path": str(path), "bytes": path.stat().st_size, "missing": missing}))
    return 0


def written(home: Home, path: Path, why: str) -> tuple[Path, list[str]]:
    """The bundle under its name once it is whole; and what could not be read, with the reason."""
    missing: list[str] = []
    unfinished = path.with_name(f".{path.name}.part")
    with tarfile.open(unfinished, "w:gz", compresslevel=6) as bundle:
        for name, part in parts(home, why):
            try:
                text = part()
            except Exception as error:  # noqa: BLE001  a part that fails must not keep the others out
                missing.append(f"{name}: {type(error).__name__}: {error}")
                continue
            add(bundle, name, text.encode("utf-8", "replace"))
        add(bundle, "missing.txt", "\n".join(missing).encode())
    unfinished.chmod(0o600)
    with unfinished.open("rb") as whole:
        os.fsync(whole.fileno())
    unfinished.replace(path)
    return path, missing


def add(bundle: tarfile.TarFile, name: str, blob: bytes) -> None:
    """One file of the bundle."""
    info = tarfile.TarInfo(f"pulse/{name}")
    info.size, info.mtime, info.mode = len(blob), int(time.time()), 0o600
    bundle.addfile(info, io.BytesIO(blob))


def parts(home: Home, why: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """Every file of the bundle, and what makes its text."""
    yield "about.json", lambda: json.dumps(about(home, why), indent=1)
    yield "config.toml", lambda: show(load(home.config))
    yield "status.json", lambda: json.dumps(home_status(home_context(home)), indent=1)
    yield "events.jsonl", lambda: "\n".join(events(home))
    yield "samples.jsonl", lambda: "\n".join(samples(home))
    yield "ticks.jsonl", lambda: "\n".join(ticks(home))
    yield "processes.jsonl", lambda: "\n".join(processes())
    for name in SYSTEM:
        yield f"proc/{name}", lambda name=name: Path("/proc", name).read_text()  # type: ignore[misc]
    for path in sorted((*home.outputs.glob("*.log"), home.daemon_log)) if home.outputs.exists() else ():
        yield f"logs/{path.name}", lambda path=path: tail(path)  # type: ignore[misc]


def about(home: Home, why: str) -> Mapping[str, Any]:
    """What wrote this, where, when and what for."""
    return {
        "why": why,
        "home": str(home.path),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "version": __version__,
        "python": sys.version,
        "sqlite": sqlite3.sqlite_version,
        "kernel": platform.release(),
    }


def events(home: Home) -> Iterator[str]:
    """The last events, oldest first."""
    with SqliteEventReader(home.path) as log:
        newest = list(log.events(limit=EVENTS, newest_first=True))
        yield from (json.dumps(row.spelled()) for row in reversed(newest))


def samples(home: Home) -> Iterator[str]:
    """The last hour of every sense."""
    now = time.time_ns() // 1000
    with SqliteVitalsReader(home.path) as vitals:
        yield from (json.dumps(sample.spelled()) for sample in vitals.between(now - HOUR_US, now))


def ticks(home: Home) -> Iterator[str]:
    """The last ticks, oldest first."""
    with SqliteVitalsReader(home.path) as vitals:
        yield from (json.dumps(tick.spelled()) for tick in reversed(vitals.ticks(TICKS)))


def processes() -> Iterator[str]:
    """The process table; command lines, but nobody's environment."""
    fields = ["pid", "ppid", "username", "status", "create_time", "memory_info", "num_threads", "cmdline"]
    for process in psutil.process_iter(fields):
        told = dict(process.info)
        told["rss"] = getattr(told.pop("memory_info"), "rss", None)
        yield json.dumps(told)


def tail(path: Path) -> str:
    """The end of a file."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL))
        return file.read().decode("utf-8", "replace")


def forget_oldest(directory: Path) -> None:
    """Keep the newest bundles only, and nothing unfinished."""
    for unfinished in directory.glob(".*.part"):
        unfinished.unlink(missing_ok=True)
    bundles = sorted(directory.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    for old in bundles[:-KEPT]:
        old.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
