"""The metrics process: serves metrics and exports traces until the daemon closes its end."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pulse_adapters.metrics.page import PROMETHEUS, Page, require_package
from pulse_adapters.metrics.tracing import PositionFile, RecordedTraces, Send, Span, Tracing
from pulse_adapters.workers import child_side
from pulse_adapters.workers.plain_file import replace_plain
from pulse_adapters.workers.threads import start_thread
from pulse_adapters.workers.untrusted_paths import folder_led_to
from pulse_core import __version__
from pulse_core.model.backoff import Backoff
from pulse_core.model.errors import PulseError

if TYPE_CHECKING:
    from pulse_adapters.metrics.families import MetricsInput

NICE = 10
VICTIM = "500"
"""The kernel's out-of-memory killer takes this before it takes the daemon."""

RETRY_S, EXPORT_S = 5.0, 2.0
LONGEST_S = 30.0
"""Seconds that a collector has for a batch; the exporter itself gives up after ten if nothing comes."""


class MetricsHome(NamedTuple):
    """A home as the metrics process sees it.

    look: takes a sample; traces: the recorded traces; exported: the file with the position of the last export.
    """

    look: "Callable[[], MetricsInput]"
    traces: RecordedTraces
    exported: Path


def run(home: MetricsHome, listen: str | None, textfile: str | None, every: float, otlp: str | None) -> None:
    """Serve at an address, write a file every so many seconds, export to a collector: as far as each is requested."""
    child_side.begin(NICE, child_side.MEMORY)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(VICTIM)
    page = Page(home.look, __version__)
    if listen:
        PeriodicTask(lambda: serve_page(page, listen), RETRY_S, report_problem, RETRY_S).begin("web")
    if textfile:
        PeriodicTask(lambda: write_page(page, Path(textfile)), every, report_problem, every).begin("textfile")
    export = TraceExport(home, otlp) if otlp else None
    if export:
        PeriodicTask(export.round, EXPORT_S, report_problem).begin("traces")
    for _ in child_side.requests():
        """Nothing is asked of it; it waits for the end."""
    if export:
        export.rest()
    if textfile and page.farewell():
        write_page(page, Path(textfile))
    child_side.exit_at_once(0)  # what still waits for somebody in a thread must not hold up the end


class PeriodicTask:
    """Work that is done at intervals. work: returns the problem, or empty; say: called when that changes.

    A failure is retried at growing intervals, but at least every `longest` seconds.
    """

    def __init__(
        self, work: Callable[[], str], every: float, say: Callable[[str], None], longest: float = 300.0
    ) -> None:
        self._work, self._every, self._say, self._longest = work, every, say, max(longest, every)
        self._said = ""
        self._failures = 0

    def once(self) -> float:
        """Do it, report a change, and return the seconds until the next time."""
        try:
            why = self._work()
        except PulseError as error:
            why = str(error)
        except OSError as error:
            why = f"{error.filename or 'the system'}: {error.strerror or error}"
        except Exception as error:  # noqa: BLE001 - whatever it is, the other tasks go on and it is tried again
            why = f"{type(error).__name__}: {error}"
        if why and why != self._said:
            self._say(why)
        self._said, self._failures = why, self._failures + 1 if why else 0
        return Backoff(self._every, self._longest).after(self._failures + 1)

    def begin(self, name: str) -> None:
        """Do it for ever in a daemon thread."""
        start_thread(self._for_ever, name)

    def _for_ever(self) -> None:
        while True:
            time.sleep(self.once())


def report_problem(words: str) -> None:
    """Report a problem to the daemon."""
    child_side.send({"why": words[:1_000]})


def serve_page(page: Page, listen: str) -> str:
    """Serve the page for ever, or return why that is impossible."""
    require_package(*PROMETHEUS)
    from pulse_adapters.metrics.web import serve_forever

    return serve_forever(listen, page)


def write_page(page: Page, path: Path) -> str:
    """Write the page into a file, readable by everybody, as node_exporter needs; returns why that failed, or empty.

    No link of another user's is followed to its folder: root would write where he likes.
    """
    try:
        with folder_led_to(path.parent) as folder:
            replace_plain(Path(path.name), page.served()[0], 0o644, within=folder, synced=False)
    except OSError as error:
        return f"{path} can't be written: {error.strerror}"
    return ""


class TraceExport:
    """Exports the traces of a home to a collector."""

    def __init__(self, home: MetricsHome, url: str) -> None:
        self._home, self._url = home, url
        self._tracing: Tracing | None = None
        self._sending = threading.Lock()

    def round(self) -> str:
        """Send what is new; returns the problem, or empty. Raises PulseError."""
        with self._sending:
            if self._tracing is None:
                require_package(
                    "opentelemetry.exporter.otlp.proto.http", "opentelemetry-exporter-otlp-proto-http", "otel"
                )
                from pulse_adapters.metrics.otlp import OtlpCollector
                from pulse_adapters.workers.bounded_answers import bound_answers

                bound_answers()

                source = self._home.traces
                collector = OtlpCollector(self._url, source.here().host, __version__)
                self._tracing = Tracing(
                    source, PositionFile(self._home.exported), self._in_time(collector.take)
                )
            why = self._tracing.round()
        return f"{self._url} did not take the traces: {why}" if why else ""

    def _in_time(self, send: Send) -> Send:
        """The same, but it ends this process if it does not end: whoever answers without end sets no timeout off."""

        def end() -> None:
            report_problem(f"{self._url} did not come to an end of its answer within {LONGEST_S:g} s")
            child_side.exit_at_once(1)

        def take(spans: Sequence[Span]) -> str:
            overdue = threading.Timer(LONGEST_S, end)
            overdue.daemon = True
            overdue.start()
            try:
                return send(spans)
            finally:
                overdue.cancel()

        return take

    def rest(self) -> None:
        """Begin no further round; a running one has a second, so that its position is stored."""
        self._sending.acquire(timeout=1.0)
