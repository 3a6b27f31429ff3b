"""An event as one line for people."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pulse_core.model.durations import duration_text
from pulse_core.model.short_ids import CUT
from pulse_core.model.text import count
from upulse_cli.time_args import local

Spelled = Mapping[str, Any]
LONGEST = 1_000
"""Characters of a value; `--json` has all."""
FOR_PULSE = ("started", "settings")
"""What of a result Pulse alone can read: clock ticks, and a checksum."""
UNSAID: Sequence[Any] = ("", None, [], {}, False)


def line(event: Spelled) -> str:
    """Row, local time, kind, what it is about, what it says."""
    when = local(event["at"])
    about = short(event["subject"]) if event["kind"].startswith("effect-") else event["subject"]
    who = "" if event["actor"] == "pulse" else f"by {event['actor']}"
    parts = (f"{event['seq']:>6}  {when}  {event['kind']:<22}", about, said(event), who)
    return "  ".join(part for part in parts if part)


def with_subject(event: Spelled) -> str:
    """What it is about, and what it says of that, if anything."""
    return f"{event['subject']}: {words}" if (words := said(event)) else str(event["subject"])


def said(event: Spelled) -> str:
    """What its data says, in words where there are better ones than names and values."""
    data = event["data"]
    if not isinstance(data, Mapping):
        return "(redacted)"
    if "$damaged" in data:
        return f"(damaged: {data['$damaged']})"
    try:
        return in_words(event, data)
    except (KeyError, TypeError, AttributeError):  # of another version, or a bit of it has flipped
        return pairs(data)


def in_words(event: Spelled, data: Mapping[str, Any]) -> str:
    """What the data of a kind says; raises like any dict if it is not of that kind."""
    match event["kind"]:
        case "effect":
            return f"{short(event['id'])}  {data.get('reason') or 'requested by hand'}"
        case "effect-acked":
            return f"after {duration_text(data['took_us'])}  {pairs(for_people(data))}".rstrip()
        case "effect-failed":  # how a program ended, its error says
            done = {name: value for name, value in for_people(data).items() if name != "exit"}
            return "; ".join(filter(None, (data["error"], pairs(done))))
        case "effect-attempt-failed":
            return f"attempt {data['attempt']}: {data['error']}; again in {duration_text(data['retry_us'])}"
        case "process-died" if data.get("intended") and data.get("pid") is None:  # it was never up
            return f"{data['evidence']}, which is no death"
        case "process-died" | "process-up" | "condition-raised" | "condition-cleared":
            return str(data["evidence"])
        case "process-start-requested" | "process-restart-requested":
            return str(data.get("why", ""))
        case "restart-delayed" | "answer-delayed":
            so_far = " so far" if data.get("lasts") else ""
            return f"held back for {duration_text(data['held_us'])}{so_far} by {data['held_by']}"
        case "settings-loaded":
            gone = f"; not in the settings any more: {', '.join(data['gone'])}" if data.get("gone") else ""
            return f"guarding {', '.join(data.get('processes', ())) or 'nothing'}{gone}"
        case "promote":
            asked = f", asked by {data['asked_by']}" if data.get("asked_by") else ""
            why = f": {data['why']}" if data.get("why") else ""
            return f"in force, and watched for {duration_text(data['watch_us'])}{asked}{why}"
        case "engine-loaded":
            rules = count(len(data.get("rules", ())), "rule")
            instead = (
                f", instead of {data['instead_of'][:12]}: {data['why']}" if data.get("instead_of") else ""
            )
            return f"{rules}, loaded in {duration_text(data['took_ms'] * 1_000)}{instead}"
        case "log-verified" if not data.get("fault"):
            return f"{count(data['rows'], 'row')} in {duration_text(data['took_ms'] * 1_000)}"
        case "rollback":
            asked = data.get("asked_by", "pulse")
            by = "" if asked == "pulse" else f", asked by {asked}"
            why = f": {data['why']}" if data.get("why") else ""
            return f"{data['rejected'][:12]} was rolled back to {data['to'][:12]}{by}{why}"
        case "settings-refused":
            return "; ".join(data["faults"])
        case "daemon-started" if data.get("last_seen"):
            rest = pairs({name: value for name, value in data.items() if name != "last_seen"})
            return f"{rest}, the one before it ended without a stop"
        case "safe-mode-entered":
            return f"without {', '.join(data['left_out'])}, after {count(data['crashes'], 'crash')}"
        case "process-stopped":
            return f"{data['evidence']}; left alone for {duration_text(data['expires_us'])}"
        case _ if "expires_us" in data and data.keys() <= {"expires_us", "why"}:
            return f"for {duration_text(data['expires_us'])}  {data.get('why', '')}".rstrip()
        case "log-matched":
            return matched(data)
        case _ if data.get("why"):
            rest = pairs({name: value for name, value in data.items() if name != "why"})
            return "; ".join(filter(None, (str(data["why"]), rest)))
        case _:
            return pairs(data)


def for_people(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """What of an effect's result people can read."""
    return {name: value for name, value in data.get("result", {}).items() if name not in FOR_PULSE}


def matched(data: Mapping[str, Any]) -> str:
    """How bad, how many if there is more than one, and the first of the lines; not where the reader stands."""
    number = f" ({data['count']} lines)" if data["count"] > 1 else ""
    first = next(iter(data.get("lines", ())), "only counted")
    return f"{data['severity']}{number}: {first}"


def pairs(data: Mapping[str, Any]) -> str:
    """`name=value` for whatever says something; lists with commas, what is nested deeper as JSON."""
    return " ".join(f"{name}={_plain(value)}" for name, value in data.items() if value not in UNSAID)


def _plain(value: Any) -> str:
    if isinstance(value, list) and not any(isinstance(one, list | dict) for one in value):
        value = ",".join(map(str, value))
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def short(name: str) -> str:
    """The end of an id, which tells it from others; its beginning is only the time."""
    return f"{CUT}{name[-8:]}" if len(name) == 36 and name.count("-") == 4 else name
