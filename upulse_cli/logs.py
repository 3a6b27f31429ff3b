"""What the daemon says while it lives: words and colours for people, JSON lines for the journal."""

import asyncio
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pulse_core.model.event import Event
from pulse_core.model.payload import Json

LOG = logging.getLogger("pulse.event")
COLOURS = {"process-died": 31, "effect-failed": 31, "effect-unknown": 31, "error": 31, "process-up": 32,
           "effect-acked": 32, "effect": 33, "paused": 35, "resumed": 35}  # fmt: skip
MEGABYTE = 1 << 20
MOMENT = 0.02
"""Seconds until recorded events are told: longer than a reflex, shorter than anybody waits."""


class Human(logging.Formatter):
    """One line a record: local time, what, about what, details."""

    def __init__(self, colours: bool) -> None:
        super().__init__()
        self.colours = colours

    def format(self, record: logging.LogRecord) -> str:
        clock = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        colour = COLOURS.get(getattr(record, "kind", ""), 31 if record.levelno > logging.INFO else 0)
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return f"\x1b[2m{clock}\x1b[0m \x1b[{colour}m{text}\x1b[0m" if self.colours else f"{clock} {text}"


class Lines(logging.Formatter):
    """One JSON object a record."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Json] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        told.update(getattr(record, "told", {}))
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told)


def speak(file: Path | None = None) -> None:
    """Set up logging: into `file` (rotated at 5 MiB) in JSON lines, or to stderr, for people if it is a terminal."""
    handler: logging.Handler
    if file:
        from logging.handlers import RotatingFileHandler  # half a MiB, where nothing else logs into files

        file.parent.mkdir(mode=0o700, exist_ok=True)
        handler = RotatingFileHandler(file, maxBytes=5 * MEGABYTE, backupCount=1)
        handler.setFormatter(Lines())
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(Human(True) if sys.stderr.isatty() else Lines())
    root = logging.getLogger("pulse")
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False


class Narrator:
    """Logs recorded events, a listener of the log; errors are logged where they are reported.

    It speaks a moment later: words must not hold up what they tell of. Call `speak` at the end.
    """

    def __init__(self) -> None:
        self._news: list[Event] = []

    def __call__(self, events: Sequence[Event]) -> None:
        if not self._news:
            asyncio.get_running_loop().call_later(MOMENT, self.speak)
        self._news += events

    def speak(self) -> None:
        """Log what was heard since the last time."""
        news, self._news = self._news, []
        for event in news:
            if event.kind != "error":
                LOG.info("%s", spoken(event), extra={"kind": event.kind, "told": {"event": event.spelled()}})


def spoken(event: Event) -> str:
    """An event as a short line: kind, subject, and what its data says."""
    data: Mapping[str, Json] = json.loads(event.data)
    match event.kind:
        case "effect":
            details = f"{data['key']}  because {data.get('reason') or 'somebody asked'}"
            return f"{event.kind:18} {details}"
        case "effect-acked":
            result = " ".join(
                f"{key}={value}" for key, value in data.get("result", {}).items() if key != "output"
            )
            details = f"after {data['took_us'] / 1000:.1f} ms  {result}"
        case "daemon-started":
            details = f"version {data['version']}, pid {data['pid']}"
        case _:
            details = "  ".join(
                f"{key}={value}" for key, value in data.items() if value not in ("", [], None)
            )
    subject = event.subject if not event.kind.startswith("effect") else ""
    return f"{event.kind:18} {subject}  {details}" if subject else f"{event.kind:18} {details}"


def sensed(data: Mapping[str, Json]) -> str:
    """A system sample as a short line."""
    disks = " ".join(
        f"{path} {disk['used']:.0%}" for path, disk in data.get("disks", {}).items() if "used" in disk
    )
    return (
        f"{'vitals':18} cpu {data.get('cpu', 0):.0%}  memory {data.get('memory', {}).get('used', 0):.0%}  "
        f"disk {disks}  load {data.get('load', {}).get('1', data.get('load1', 0))}"
    )
