"""Exports spans to an OpenTelemetry collector over OTLP/HTTP, with the SDK's exporter."""

import logging
import socket
from collections import deque
from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from pulse_adapters.metrics.spans import Span

TIMEOUT_S = 10.0


class FixedIds(IdGenerator):
    """An id generator that returns the ids set beforehand."""

    def __init__(self) -> None:
        self.trace, self.span = 1, 1

    def generate_trace_id(self) -> int:
        """The trace's."""
        return self.trace

    def generate_span_id(self) -> int:
        """The span's."""
        return self.span


class SpanCollector(SpanProcessor):
    """Collects spans as they end."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        """Keep it."""
        self.spans.append(span)


class ExporterLog(logging.Handler):
    """Keeps the exporter's last log message: the exporter itself returns only whether it worked."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: deque[str] = deque(maxlen=1)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record's message."""
        self.heard.append(record.getMessage())


class OtlpCollector:
    """A collector at a URL. host: the id of this Pulse; headers come from OTEL_EXPORTER_OTLP_HEADERS, as ever."""

    def __init__(self, url: str, host: str, version: str, timeout: float = TIMEOUT_S) -> None:
        self._ids, self._ended, self._ear = FixedIds(), SpanCollector(), ExporterLog()
        logger = logging.getLogger("opentelemetry")
        logger.propagate = False
        logger.addHandler(self._ear)
        about = {
            "service.name": "pulse",
            "service.version": version,
            "service.instance.id": host,
            "host.name": socket.gethostname(),
        }
        provider = TracerProvider(
            resource=Resource.create(about), id_generator=self._ids, shutdown_on_exit=False
        )
        provider.add_span_processor(self._ended)
        self._tracer = provider.get_tracer("pulse", version)
        self._exporter = OTLPSpanExporter(endpoint=url, timeout=timeout)

    def take(self, spans: Sequence[Span]) -> str:
        """Export the spans; returns why the collector did not take them, or empty."""
        for span in spans:
            self._made(span)
        made, self._ended.spans = self._ended.spans, []
        self._ear.heard.clear()
        if self._exporter.export(made) is SpanExportResult.SUCCESS:
            return ""
        return self._ear.heard[-1] if self._ear.heard else "it was not accepted"

    def _made(self, span: Span) -> None:
        self._ids.trace, self._ids.span = span.trace, span.id
        made = self._tracer.start_span(
            span.name, _parent_context(span), start_time=span.start, attributes=dict(span.attributes)
        )
        made.set_status(Status(StatusCode.ERROR, span.failed) if span.failed else Status(StatusCode.OK))
        made.end(span.end)


def _parent_context(span: Span) -> Context:
    """The context of a span's parent; an empty one for the root of a trace."""
    if span.parent is None:
        return Context()
    parent = SpanContext(span.trace, span.parent, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(parent), Context())
