"""Exports spans to an OpenTelemetry collector over OTLP/HTTP, with the SDK's exporter."""

import logging
import socket
from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from pulse_adapters.metrics.tracing import Span

TIMEOUT_S = 10.0


class ExporterLog(logging.Handler):
    """Keeps what the exporter logged last: the exporter itself returns only whether it worked.

    An error that it tells is worth more than its last words, which only say that it has given up.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard = self.error = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record's message, and the error in it."""
        self.heard = record.getMessage()
        errors = [one for one in record.args or () if isinstance(one, BaseException)]
        if errors:
            self.error = _innermost(errors[-1])
        elif len(record.args or ()) > 1:  # it says more than that it has given up, as what was answered
            self.error = ""


class OtlpCollector:
    """A collector at a URL. host: the id of this Pulse; headers come from OTEL_EXPORTER_OTLP_HEADERS, as ever."""

    def __init__(self, url: str, host: str, version: str) -> None:
        self._log = ExporterLog()
        logger = logging.getLogger("opentelemetry")
        logger.propagate = False
        logger.addHandler(self._log)
        about = {
            "service.name": "pulse",
            "service.version": version,
            "service.instance.id": host,
            "host.name": socket.gethostname(),
        }
        self._resource, self._scope = Resource.create(about), InstrumentationScope("pulse", version)
        self._exporter = OTLPSpanExporter(endpoint=url, timeout=TIMEOUT_S)

    def take(self, spans: Sequence[Span]) -> str:
        """Export the spans; returns why the collector did not take them, or empty."""
        self._log.heard = self._log.error = ""
        if self._exporter.export([self._readable(span) for span in spans]) is SpanExportResult.SUCCESS:
            return ""
        return self._log.error or self._log.heard or "it was not accepted"

    def _readable(self, span: Span) -> ReadableSpan:
        """The span as the SDK has it. No tracer makes it: that would give it an id and times of its own."""
        return ReadableSpan(
            span.name,
            _context(span.trace, span.id),
            None if span.parent is None else _context(span.trace, span.parent),
            self._resource,
            span.attributes,
            status=Status(StatusCode.ERROR, span.failed) if span.failed else Status(StatusCode.OK),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=self._scope,
        )


def _innermost(error: BaseException) -> str:
    """What an error stands on, in the system's words where it is one of the system."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _context(trace: int, span: int) -> SpanContext:
    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
