"""What the daemon says while it lives: words and colours for people, prefixed words for the journal, else JSON lines."""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.names import RESTART_PROCESS
from pulse_core.model.text import clean, one_line
from upulse_cli.time_args import local
from upulse_cli.views.events import said

if TYPE_CHECKING:
    from pulse_core.daemon.request_handler import RequestHandler
    from pulse_core.projections.effects import OpenEffect

LOG = logging.getLogger("pulse.event")
COLOURS = {"process-died": 31, "effect-failed": 31, "effect-unknown": 31, "error": 31, "process-up": 32,
           "effect-acked": 32, "effect": 33, "paused": 35, "resumed": 35,
           "safe-mode-entered": 35, "safe-mode-left": 35}  # fmt: skip
WRONG = frozenset(
    ("condition-raised", "damage-accepted", "effect-attempt-failed", "effect-failed", "effect-unknown", "process-died",
     "promote-refused", "rollback", "rule-quarantined", "safe-mode-entered", "settings-refused", "work-shed")
)  # fmt: skip
"""Kinds of events that are logged as warnings."""
PLANNED = "process-down"
"""What a `process-died` is called that Pulse or a person intended, or that says that it was not started yet."""
LONGEST = 300
"""Characters of a line about an event; the log has all."""
PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
"""Severities of syslog for the levels of records."""
REMEMBERED = 1_000
ALOUD_EVERY = 5.0
MOMENT = 0.02
"""Seconds until recorded events are told: longer than a reflex, shorter than anybody waits."""
AT_A_TIME = 20
"""Events that are told before others have their turn."""


class Human(logging.Formatter):
    """One line a record: local time, what, about what, details."""

    def __init__(self, colours: bool) -> None:
        super().__init__()
        self.colours = colours

    def format(self, record: logging.LogRecord) -> str:
        clock = datetime.fromtimestamp(moment(record)).strftime("%H:%M:%S.%f")[:-3]
        colour = COLOURS.get(getattr(record, "kind", ""), 31 if record.levelno > logging.INFO else 0)
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return f"\x1b[2m{clock}\x1b[0m \x1b[{colour}m{text}\x1b[0m" if self.colours else f"{clock} {text}"


class JournalLines(logging.Formatter):
    """Lines with their severity in front, as sd-daemon(3) has it; the journal adds time and name."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        severity = next((number for level, number in PRIORITIES if record.levelno >= level), 7)
        return "\n".join(f"<{severity}>{line}" for line in clean(text).splitlines() or [""])


class JsonLines(logging.Formatter):
    """One JSON object a record."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Json] = {
            "at": datetime.fromtimestamp(moment(record), UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        told.update(getattr(record, "told", {}))
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told)


def log_line(line: str) -> str:
    """A line of the daemon's log as people read it: what `JsonLines` wrote as words, any other as it is."""
    try:
        told = json.loads(line)
        at, message, level = told["at"], told["message"], told.get("level", "info")
        loud = "" if level in ("info", "debug") else f"{level.upper()} "
        words = f"{local(at)} {loud}{message}"
    except (ValueError, TypeError, KeyError):
        return one_line(line)
    trace = f"\n{told['traceback']}" if told.get("traceback") else ""
    return one_line(words) + clean(trace)


def moment(record: logging.LogRecord) -> float:
    """When what a record tells of happened, seconds since the epoch: an event's own time, else now."""
    at = getattr(record, "at", None)
    return record.created if at is None else at / 1e6


class Narrator:
    """Logs recorded events, a listener of the log; errors are logged where they are reported.

    It speaks a moment later: words must not hold up what they tell of. Call `speak` at the end.

    earlier: asked at the first event for the open effects of before it, which a daemon that was killed has left.
    """

    def __init__(self, earlier: "Callable[[], Mapping[str, OpenEffect]]" = dict) -> None:
        self._earlier: Callable[[], Mapping[str, OpenEffect]] | None = earlier
        self._news: deque[Event] = deque()
        self._keys: dict[str, str] = {}
        self._dead: set[str] = set()
        """Processes whose death was told as a warning, until a restart is wished."""

    def __call__(self, events: Sequence[Event]) -> None:
        if self._earlier:
            self._keys |= {id_: effect.event.subject for id_, effect in self._earlier().items()}
            self._earlier = None
        if not self._news:
            asyncio.get_running_loop().call_later(MOMENT, self._speak_in_turns)
        self._news += events

    def _speak_in_turns(self) -> None:
        self.speak(AT_A_TIME)
        if self._news:
            asyncio.get_running_loop().call_soon(self._speak_in_turns)

    def speak(self, most: int | None = None) -> None:
        """Log what was heard since the last time; most: no more events than this."""
        for _ in range(min(len(self._news), most or len(self._news))):
            event = self._news.popleft()
            if event.kind != "error" and LOG.isEnabledFor(logging.INFO):
                told = event.spelled()
                kind = PLANNED if is_planned(told) else event.kind
                about_what = "  ".join(part for part in (self._subject(event), said(told)) if part)
                words = one_line(f"{kind:18} {about_what}".rstrip())
                if len(words) > LONGEST:
                    words = f"{words[: LONGEST - 1]}…"
                is_wrong = kind in WRONG or follows_a_crash(told) or guards_less(told)
                if kind == "process-died":
                    self._dead.add(event.subject)
                name, is_deaf = restarted_process(told)
                is_wrong = is_wrong or (is_deaf and name not in self._dead)
                self._dead.discard(name)
                level = logging.WARNING if is_wrong else logging.INFO
                about = {name: value for name, value in told.items() if name != "data"}  # of any size
                LOG.log(level, "%s", words, extra={"kind": kind, "told": {"event": about}, "at": event.at})

    def _subject(self, event: Event) -> str:
        """What the event is about, in words: the key of an effect rather than its id."""
        if event.kind == "effect":
            self._keys[event.id] = event.subject
            if len(self._keys) > REMEMBERED:
                del self._keys[next(iter(self._keys))]
        return self._keys.get(event.subject, event.subject)


def guards_less(told: Mapping[str, Json]) -> bool:
    """Whether an event tells of settings that name a process no more."""
    data = told["data"]
    return told["kind"] == "settings-loaded" and isinstance(data, Mapping) and bool(data.get("gone"))


def is_planned(told: Mapping[str, Json]) -> bool:
    """Whether an event tells of a process that is down on purpose, or was not started yet."""
    return (
        told["kind"] == "process-died"
        and isinstance(told["data"], Mapping)
        and bool(told["data"].get("intended"))
    )


def follows_a_crash(told: Mapping[str, Json]) -> bool:
    """Whether an event tells of a daemon before which one ended without a stop."""
    data = told["data"]
    return told["kind"] == "daemon-started" and isinstance(data, Mapping) and bool(data.get("last_seen"))


def restarted_process(told: Mapping[str, Json]) -> tuple[str, bool]:
    """Whom an event wishes to restart, and whether that one lives and does not serve; empty if it wishes nothing of the
    kind. If it never served, no death tells of that."""
    data = told["data"]
    if told["kind"] != "effect" or not isinstance(data, Mapping) or data.get("action") != RESTART_PROCESS:
        return "", False
    params = data.get("params")
    if not isinstance(params, Mapping):
        return "", False
    return str(params.get("process", "")), bool(params.get("if_dead") and not params.get("only_start"))


async def sense_aloud(request_handler: "RequestHandler") -> None:
    """Log a line of vitals every few seconds, for whoever watches a terminal."""
    while True:
        await asyncio.sleep(ALOUD_EVERY)
        if vitals := request_handler.report()["vitals"].get("system-resource"):
            LOG.info("%s", sensed(vitals))


def sensed(data: Mapping[str, Json]) -> str:
    """A system sample as a short line."""
    disks = [f"{path} {disk['used']:.0%}" for path, disk in data["disks"].items() if "used" in disk]
    pressure = [f"{name} {share['some']:.0%}" for name, share in data["psi"].items() if share.get("some")]
    return (
        f"{'vitals':18} cpu {data['cpu']:.0%}  memory {data['memory']:.0%}  disk {' '.join(disks)}  "
        f"load {data['load1']}  pressure {' '.join(pressure) or 'none'}  "
        f"self {data['self_cpu']:.2%} {data['self_rss'] >> 20} MiB"
    )
