"""The metrics process: `python -m upulse_cli.metrics_process --home H …`. It reads, asks the daemon at most once a second,
serves numbers and exports traces; it ends when the daemon hangs up, and so with it.
"""

import argparse
import threading
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.client import Client
from pulse_adapters.metrics.periodic_tasks import PeriodicTask
from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_adapters.workers import child_side
from pulse_core import __version__
from pulse_core.model.errors import PulseError

if TYPE_CHECKING:
    from pulse_adapters.metrics.families import MetricsInput
    from pulse_adapters.metrics.page import Page
    from pulse_adapters.metrics.tracing import Tracing

NICE = 10
VICTIM = 500
"""The kernel's out-of-memory killer takes this before it takes the daemon."""

PATIENCE_S = 2.0
RETRY_S, EXPORT_S = 5.0, 2.0


class Missing(PulseError):
    """An optional package is not installed."""


def main() -> None:
    """Serve and export until the daemon hangs up."""
    options = arguments()
    child_side.begin(NICE)
    give_way()
    home = Home(Path(options.home))
    page = Shown(home)
    if options.listen:
        PeriodicTask(lambda: page.serve(options.listen), RETRY_S, complain, RETRY_S).begin("web")
    if options.textfile:
        writing = PeriodicTask(
            lambda: page.write(Path(options.textfile)), options.every, complain, options.every
        )
        writing.begin("textfile")
    exported = Exported(home, options.otlp) if options.otlp else None
    if exported:
        PeriodicTask(exported.round, EXPORT_S, complain).begin("traces")
    for _ in child_side.requests():
        """Nothing is asked of it; it waits for the end."""
    if exported:
        exported.rest()
    if options.textfile:
        page.farewell(Path(options.textfile))
    child_side.leave(0)  # what still waits for somebody in a thread must not hold up the end


def arguments() -> argparse.Namespace:
    """What the daemon, or a person, wants."""
    parser = argparse.ArgumentParser(prog="upulse_cli.metrics_process", description=main.__doc__)
    parser.add_argument("--home", required=True)
    parser.add_argument("--listen", help="address that serves /metrics")
    parser.add_argument("--textfile", help="file that is written for node_exporter")
    parser.add_argument("--every", type=float, default=15.0, help="seconds between two writings of it")
    parser.add_argument("--otlp", help="URL of a collector for traces")
    return parser.parse_args()


def give_way() -> None:
    """Have the kernel take this first where memory is short."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(VICTIM))


def demand(package: str, name: str, extra: str) -> None:
    """Raise Missing if an optional package is not there; it may be installed while this runs."""
    with suppress(ModuleNotFoundError):
        if find_spec(package):
            return
    raise Missing(f"the package {name} is not installed; install it with: pip install 'upulse[{extra}]'")


def complain(words: str) -> None:
    """Tell the daemon what is in the way."""
    child_side.send({"why": words[:1_000]})


class Shown:
    """The page of a home, made when it is first wanted. Raises Missing."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._page: Page | None = None
        self._lock = threading.Lock()

    def page(self) -> "Page":
        """The page."""
        demand("prometheus_client", "prometheus-client", "metrics")
        from pulse_adapters.metrics.page import Page

        with self._lock:
            self._page = self._page or Page(lambda: look(self._home), __version__)
            return self._page

    def serve(self, listen: str) -> str:
        """Serve it for ever, or say why that cannot be done."""
        page = self.page()
        from pulse_adapters.metrics.web import served_at

        return served_at(listen, page)

    def write(self, path: Path) -> str:
        """Write it into a file; why that did not work, or nothing."""
        from pulse_adapters.metrics.textfile import write

        try:
            write(path, self.page().served().body)
        except OSError as error:
            return f"{path} can't be written: {error.strerror}"
        return ""

    def farewell(self, path: Path) -> None:
        """Write for the last time: the daemon is not there any more."""
        if self._page:
            self._page.farewell()
            self.write(path)


class Exported:
    """The traces of a home, on their way to a collector."""

    def __init__(self, home: Home, url: str) -> None:
        self._home, self._url = home, url
        self._tracing: Tracing | None = None
        self._sending = threading.Lock()

    def round(self) -> str:
        """Send what is new; what is in the way, or nothing. Raises PulseError."""
        with self._sending:
            self._tracing = self._tracing or self._begun()
            why = self._tracing.round()
        return f"{self._url} did not take the traces: {why}" if why else ""

    def rest(self) -> None:
        """Begin no round any more; one under way has a second, so that what was sent is known to be."""
        self._sending.acquire(timeout=1.0)

    def _begun(self) -> "Tracing":
        demand("opentelemetry.exporter.otlp.proto.http", "opentelemetry-exporter-otlp-proto-http", "otel")
        from pulse_adapters.metrics.otlp import Collector
        from pulse_adapters.metrics.recorded import RecordedTraces
        from pulse_adapters.metrics.tracing import PositionFile, Tracing

        source = RecordedTraces(
            partial(SqliteEventReader, self._home.path), partial(SqliteVitalsReader, self._home.path)
        )
        collector = Collector(self._url, source.here().host, __version__)
        return Tracing(source, PositionFile(self._home.exported), collector.take)


def look(home: Home) -> "MetricsInput":
    """How everything stands: the daemon's own words, or the little that the files say while it does not answer."""
    from pulse_adapters.metrics.families import MetricsInput

    sizes = sizes_of(home)
    try:
        with Client(home.socket, PATIENCE_S) as client:
            return MetricsInput(True, client.ask("status"), sizes)
    except (PulseError, OSError):
        return MetricsInput(False, left_behind(home), sizes)


def left_behind(home: Home) -> dict[str, Any]:
    """What is in the files, and quickly read."""
    said: dict[str, Any] = {}
    with suppress(PulseError, OSError), SqliteEventReader(home.path) as log:
        said["log"] = {"rows": log.head().seq}
    with SqliteVitalsReader(home.path) as vitals:
        said["tick"] = {"count": vitals.tick_count()}
    return said


def sizes_of(home: Home) -> dict[str, int]:
    """Bytes of each store, its write-ahead log with it."""
    stores = (home.events, home.vitals, home.state)
    sizes = {store.name: sum(size(path) for path in (store, Path(f"{store}-wal"))) for store in stores}
    with suppress(OSError):
        sizes[home.outputs.name] = sum(size(path) for path in home.outputs.iterdir())
    return sizes


def size(path: Path) -> int:
    """Bytes of a file, 0 if there is none."""
    with suppress(OSError):
        return path.stat().st_size
    return 0


if __name__ == "__main__":
    main()
