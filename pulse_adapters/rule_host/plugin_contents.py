"""Lists what plugins define, in a process of its own: the command line runs no plugin's code."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any

from pulse_adapters.rule_host.plugins import Entry, entries

PATIENCE = 10.0
"""Seconds that a plugin may take to be imported."""
PARTS = ("rules", "projections", "watchers", "executors")
Told = Mapping[str, Any]


def installed_plugins() -> Sequence[Told]:
    """Every installed plugin: its name, its package with the version, what it defines, and any error."""
    return [{**entry._asdict(), **contents_in_child(entry)} for entry in entries()]


def contents_in_child(entry: Entry) -> Told:
    """The names that a plugin defines, by part, found by a child process; `error`: why that failed, or None."""
    argv = (sys.executable, "-P", "-m", "pulse_adapters.rule_host.plugin_contents", entry.value)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    nothing: dict[str, Any] = {part: [] for part in PARTS}
    try:
        done = subprocess.run(
            argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False
        )
        return {**nothing, "error": None, **json.loads(done.stdout)}
    except subprocess.TimeoutExpired:
        return {**nothing, "error": f"{entry.value} was not imported within {PATIENCE:g} s"}
    except ValueError:
        return {**nothing, "error": f"importing {entry.value} ended the process (exit {done.returncode})"}


def contents(value: str) -> Told:
    """The names that an entry point's value defines; it is imported in this process."""
    from pulse_adapters.rule_host.loader import load_plugin
    from pulse_core.rules.onion import rule_name

    thing = resolve_name(value)
    return {
        "rules": [rule_name(rule) for rule in load_plugin(value).rules],
        "projections": list(getattr(thing, "projections", ())),
        "watchers": _called("name", getattr(thing, "watchers", ())),
        "executors": _called("action", getattr(thing, "executors", ())),
    }


def _called(attribute: str, things: Iterable[Any]) -> list[str]:
    return [str(getattr(one, attribute, type(one).__name__)) for one in things]


def main(value: str) -> None:
    """Print the contents as JSON; what the plugin prints itself goes to stderr."""
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        told: Told = contents(value)
    except Exception as error:  # noqa: BLE001 - somebody else's code, which may raise what it likes
        told = {"error": f"{type(error).__name__}: {error}"}
    os.write(answer, json.dumps(told).encode())


if __name__ == "__main__":
    main(sys.argv[1])
