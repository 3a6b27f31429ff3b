"""Validates the child's replies. Raises ValueError for what a correct child never sends."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic_core import to_json

from pulse_adapters.action_host.bounds import MOST_BYTES
from pulse_adapters.workers.source_locations import with_place
from pulse_core.model.json_types import Json
from pulse_core.ports import EngineFault, Policy, Safety

MOST = 200
"""Watchers, or executors, of an engine."""
LEAST_INTERVAL, LONGEST = 1.0, 86_400.0
_WORDS = 2_000
_NAME = re.compile(r"[^\x00-\x20\x7f-\x9f\u2028\u2029]{1,200}")

Reply = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WatcherDescription:
    """A watcher as its child describes it; times in seconds."""

    name: str
    key: str
    interval: float
    timeout: float
    nudged: bool
    place: str


@dataclass(frozen=True, slots=True)
class ExecutorDescription:
    """An executor as its child describes it. policy: without params; None if it depends on them."""

    action: str
    policy: Policy | None
    place: str


@dataclass(frozen=True, slots=True)
class LoadReply:
    """What a child has loaded, and the faults of what is left out."""

    watchers: tuple[WatcherDescription, ...]
    executors: tuple[ExecutorDescription, ...]
    faults: tuple[EngineFault, ...]


def load_reply_of(reply: Reply) -> LoadReply:
    """What the child has loaded; a single invalid item becomes a fault."""
    faults = [EngineFault(_text(whose), _text(words)) for whose, words in _list(reply, "faults")]
    watchers = _each(_list(reply, "watchers"), _watcher, "watcher", "name", faults)
    executors = _each(_list(reply, "executors"), _executor, "executor", "action", faults)
    return LoadReply(watchers, executors, tuple(faults))


def _each(
    ones: list[Any], made: Callable[[Any], T], what: str, name: str, faults: list[EngineFault]
) -> tuple[T, ...]:
    found = []
    for one in map(_table, ones):
        try:
            found.append(made(one))
        except ValueError as error:
            words = with_place(f"left out: {error}", _text(one.get("place")))
            faults.append(EngineFault(f"{what}:{str(one.get(name))[:50]}", words))
    return tuple(found)


def roots_of(reply: Reply) -> Mapping[str, str]:
    """The folders of the authors' code: their display names by path."""
    return {_text(path): _text(words) for path, words in _table(reply.get("roots")).items()}


def data_of(said: Reply) -> Mapping[str, Json] | None:
    """The data of a sample or of a result, or None where there is none."""
    data = said.get("data")
    if data is None:
        return None
    if (
        not isinstance(data, dict) or len(to_json(data)) > 2 * MOST_BYTES
    ):  # numbers may be spelled at greater length
        raise ValueError(f"data that are no object of at most {MOST_BYTES:,} bytes")
    return data


def policy_of(said: Reply) -> Policy:
    """The policy of an executor."""
    retries = said.get("retries")
    if not isinstance(retries, int) or not 0 <= retries <= 1_000:
        raise ValueError("retries that are no number of at most 1,000")
    pauses = {name: _seconds(said, name, 0.0) for name in ("backoff", "backoff_max", "cooldown")}
    return Policy(Safety(said.get("safety")), _seconds(said, "timeout"), retries, **pauses)


def failure_of(reply: Reply) -> tuple[str, str] | None:
    """How a call failed, and the message; None if it succeeded."""
    if isinstance(reply.get("ok"), dict):
        return None
    return _text(reply.get("wrong")), _text(reply.get("words"))


def names_of(said: Reply) -> tuple[str, ...]:
    """Names of watchers."""
    return tuple(map(_text, _list(said, "names")))


def number_of(said: Reply, name: str) -> int:
    """A number within its bounds."""
    found = said.get(name)
    if not isinstance(found, int) or not 0 <= found < 2**31:
        raise ValueError(f"{name} that is no number")
    return found


def _watcher(one: Any) -> WatcherDescription:
    return WatcherDescription(
        _name(one, "name"),
        _name(one, "key"),
        max(LEAST_INTERVAL, _seconds(one, "interval")),
        _seconds(one, "timeout"),
        one.get("nudged") is True,
        _text(one.get("place")),
    )


def _executor(one: Any) -> ExecutorDescription:
    policy = None if one.get("policy") is None else policy_of(_table(one["policy"]))
    return ExecutorDescription(_name(one, "action"), policy, _text(one.get("place")))


def _seconds(one: Mapping[str, Any], name: str, least: float = 0.001) -> float:
    found = one.get(name)
    if not isinstance(found, int | float) or isinstance(found, bool) or not least <= found <= LONGEST:
        raise ValueError(f"its {name} is {str(found)[:50]}; write seconds, {least:g} to {LONGEST:g}")
    return float(found)


def _name(one: Mapping[str, Any], which: str) -> str:
    name = one.get(which)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"its {which} is {str(name)[:50]!r}; write 1 to 200 characters without spaces")
    return name


def _list(reply: Reply, name: str) -> list[Any]:
    found = reply.get(name)
    if not isinstance(found, list) or len(found) > MOST:
        raise ValueError(f"{name} that are no list of at most {MOST}")
    return found


def _table(one: Any) -> dict[str, Any]:
    if not isinstance(one, dict):
        raise ValueError("something else than an object")
    return one


def _text(one: Any) -> str:
    if not isinstance(one, str):
        raise ValueError("something else than a text")
    return one[:_WORDS]
