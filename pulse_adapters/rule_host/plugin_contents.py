"""Lists what plugins define, in a process of its own: the command line runs no plugin's code."""

import asyncio
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, NamedTuple

from pulse_adapters.rule_host.plugins import Entry, entries
from pulse_adapters.workers.child_side import answer_once
from pulse_adapters.workers.conversation import ask
from pulse_adapters.workers.environment import inherited_environment
from pulse_adapters.workers.framing import Message, WorkerFault
from pulse_adapters.workers.worker import module_program
from pulse_core.model.errors import PulseError

PATIENCE = 10.0
"""Seconds that a plugin may take to be imported."""


class PluginParts(NamedTuple):
    """The names that a plugin defines, by part."""

    rules: tuple[str, ...] = ()
    projections: tuple[str, ...] = ()
    watchers: tuple[str, ...] = ()
    executors: tuple[str, ...] = ()


def installed_plugins() -> Sequence[Mapping[str, Any]]:
    """Every installed plugin: its name, its package with the version, what it defines, and any error."""
    return [{**entry._asdict(), **contents_in_child(entry)} for entry in entries()]


def contents_in_child(entry: Entry) -> Mapping[str, Any]:
    """The names that a plugin defines, by part, found by a child process; `error`: why that failed, or None."""
    env = {**inherited_environment(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = module_program("pulse_adapters.rule_host.plugin_contents", env=env)
    try:
        parts = asyncio.run(ask(program, {"value": entry.value}, PluginParts, seconds=PATIENCE))
    except WorkerFault as error:
        return {**PluginParts()._asdict(), "error": f"importing {entry.value} {error}"}
    except PulseError as error:
        return {**PluginParts()._asdict(), "error": str(error)}
    return {**parts._asdict(), "error": None}


def contents(request: Message) -> Mapping[str, Any]:
    """The names that an entry point's value defines; it is imported in this process."""
    from pulse_adapters.rule_host.loader import load_plugin
    from pulse_core.rules.onion import rule_name

    try:
        thing = resolve_name(request["value"])
        return {
            "rules": [rule_name(rule) for rule in load_plugin(request["value"])[0]],
            "projections": list(getattr(thing, "projections", ())),
            "watchers": _called("name", getattr(thing, "watchers", ())),
            "executors": _called("action", getattr(thing, "executors", ())),
        }
    except Exception as error:
        raise PulseError(f"{type(error).__name__}: {error}") from error


def _called(attribute: str, things: Iterable[Any]) -> list[str]:
    return [str(getattr(one, attribute, type(one).__name__)) for one in things]


if __name__ == "__main__":
    answer_once(contents)
