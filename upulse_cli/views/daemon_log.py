"""A line of the daemon's log as people read it."""

import json

from pulse_core.model.text import clean, one_line
from upulse_cli.time_args import local


def log_line(line: str) -> str:
    """A line of JSON as the daemon's log has it, as words; any other line as it is."""
    try:
        told = json.loads(line)
        words = f"{local(told['at'])} {told['message']}"
    except (ValueError, TypeError, KeyError):
        return one_line(line)
    loud = told.get("level", "info") not in ("info", "debug")
    trace = f"\n{told['traceback']}" if told.get("traceback") else ""
    said = words.replace(" ", f" {told['level'].upper()} ", 1) if loud else words
    return one_line(said) + clean(trace)
