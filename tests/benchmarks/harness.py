"""The ground that benchmarks stand on: homes on a real disk, daemons that surely end, clocks to compare with."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.connect import connect_readonly

ROOT = Path(__file__).parents[2]
PLACE = os.environ.get("PULSE_BENCH_DIR", "/var/tmp")
"""Where homes are made: `/tmp` is often no disk."""

_PATIENCE = 60.0


@contextmanager
def directory() -> Iterator[Path]:
    """An empty directory on a real disk, gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix="pulse-bench-", dir=PLACE))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def made_home(path: Path, config: str) -> Home:
    """A home with these settings."""
    home = Home(path)
    home.create()
    home.config.write_text(f"# of a benchmark\n{config}")  # an empty file would be refused
    return home


def compiled() -> None:
    """Compile the packages, or each start would do it again where bytecode is not to be written."""
    packages = [str(ROOT / name) for name in ("pulse_core", "pulse_adapters", "upulse_cli")]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *packages], check=True)


@contextmanager
def daemon(home: Home, patience: float = _PATIENCE) -> Iterator[tuple[int, float]]:
    """A daemon of this home in a process of its own: its pid, and the seconds from spawn to READY."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as notices:
        address = home.run / "notify"
        address.unlink(missing_ok=True)
        notices.bind(str(address))
        argv = [sys.executable, "-m", "upulse_cli.serve", "--home", str(home.path)]
        environment = {**os.environ, "NOTIFY_SOCKET": str(address)}
        began = time.perf_counter()
        with (home.path / "bench.log").open("ab") as said:
            child = subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=said, stderr=said)
        try:
            _await_ready(notices, child, home, patience)
            yield child.pid, time.perf_counter() - began
        finally:
            child.terminate()
            with suppress(subprocess.TimeoutExpired):
                child.wait(_PATIENCE)
            child.kill()
            child.wait()


def _await_ready(
    notices: socket.socket, child: "subprocess.Popen[bytes]", home: Home, patience: float
) -> None:
    notices.settimeout(0.5)
    until = time.perf_counter() + patience
    while time.perf_counter() < until:
        with suppress(TimeoutError):
            if notices.recv(4096) == b"READY=1":
                return
        if child.poll() is not None:
            break
    raise RuntimeError(f"the daemon is not ready; it said:\n{(home.path / 'bench.log').read_text()}")


@contextmanager
def children_of(home: Home) -> Iterator[None]:
    """Whatever a daemon of this home left running is ended afterwards: it outlives its daemon by design."""
    try:
        yield
    finally:
        for pid in _begun(home):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _begun(home: Home) -> Sequence[int]:
    """Pids of live processes that carry an effect of this log in their environment."""
    if not home.events.exists():
        return []
    with closing(connect_readonly(home.events)) as log, suppress(sqlite3.Error):
        effects = {row[0] for row in log.execute("SELECT id FROM event WHERE kind = 'effect'")}
        return [
            pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _marker(pid) in effects
        ]
    return []


def _marker(pid: int) -> str:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next((one[13:].decode() for one in environment if one.startswith(b"PULSE_EFFECT=")), "")


@contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """Raises TimeoutError in the main thread if what is inside waits longer than this."""

    def overdue(number: int, frame: object) -> None:
        raise TimeoutError(f"not done within {seconds} s; a look at the daemon's log may tell why")

    began, before = time.monotonic(), signal.signal(signal.SIGALRM, overdue)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # the limit of whoever set one before, as that of a test
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 0.001))


def boot_us() -> int:
    """CLOCK_BOOTTIME in microseconds, as events bear it in `mono`."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def raw_log(path: Path) -> sqlite3.Connection:
    """A bare table in WAL mode with FULL syncs: what any durable log on SQLite costs at least."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, data TEXT)")
    return connection


ROW = "x" * 490
"""A row as long as an event is on disk."""
