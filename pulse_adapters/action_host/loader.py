"""Loads an engine's watchers and executors; here the authors' code, except that of rules, runs for the first time."""

import asyncio
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from pulse_adapters.action_host.engine_lists import WHY, run_lists
from pulse_adapters.workers.framing import Message
from pulse_adapters.workers.source_locations import Places, describe_error, with_place
from pulse_core.ports.executor import Policy

T = TypeVar("T")

_FILE = "engine.py"


class ActionsNotLoadable(Exception):
    """The engine cannot be loaded; the message names the place."""


class UnusableItem(Exception):
    """One watcher or executor that can't be used."""


class ActionContents(NamedTuple):
    """The usable watchers by name and executors by action, and their descriptions for the daemon."""

    watchers: Mapping[str, Any]
    executors: Mapping[str, Any]
    told: Message


def load(root: str, plugins: Mapping[str, str], places: Places) -> ActionContents:
    """Import plugins, then the engine. Raises ActionsNotLoadable; a single unusable item is reported and left out.

    plugins: `module:attribute` by name; one that fails is left out as well.
    """
    found = LoadedSoFar([], [], [])
    for name, entry in plugins.items():
        try:
            plugin = _guarded(partial(resolve_name, entry), places)
            found.take(_listed(plugin, "watchers"), _listed(plugin, "executors"), places)
        except ActionsNotLoadable as error:
            found.faults.append((f"plugin:{name}", str(error)))
    if not os.path.isfile(os.path.join(root, _FILE)):
        raise ActionsNotLoadable(f"there is no {_FILE} in this revision")
    sys.path.insert(0, root)
    engine, left_out = _guarded(partial(run_lists, os.path.join(root, _FILE)), places)
    found.faults.extend(
        (_FILE, with_place(f"what it lists with rules {WHY}", f"{_FILE}:{line}")) for line in left_out
    )
    found.take(_listed(engine, "WATCHERS"), _listed(engine, "EXECUTORS"), places)
    return found.contents()


class LoadedSoFar(NamedTuple):
    """Collects watchers and executors with their descriptions, and faults."""

    watchers: list[tuple[Any, Message]]
    executors: list[tuple[Any, Message]]
    faults: list[tuple[str, str]]

    def take(self, watchers: Sequence[Any], executors: Sequence[Any], places: Places) -> None:
        """Add what a plugin or the engine lists, as far as it can be used."""
        self.watchers.extend(_fit(watchers, "watcher", _watcher, places, self.faults))
        self.executors.extend(_fit(executors, "executor", _executor, places, self.faults))

    def contents(self) -> ActionContents:
        """All that was found and can be used."""
        told = {
            "watchers": [one for _, one in self.watchers],
            "executors": [one for _, one in self.executors],
            "faults": self.faults,
        }
        watchers = {one["name"]: thing for thing, one in self.watchers}
        return ActionContents(watchers, {one["action"]: thing for thing, one in self.executors}, told)


def _guarded(work: Callable[[], T], places: Places) -> T:
    """What authors' code comes to. Raises ActionsNotLoadable."""
    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - somebody else's code, which may raise what it likes
        raise ActionsNotLoadable(with_place(describe_error(error), places.of_error(error))) from None


def _listed(engine: Any, name: str) -> Sequence[Any]:
    found = getattr(engine, name, ())
    if not isinstance(found, list | tuple):
        raise ActionsNotLoadable(f"{name} is no list; write {name} = [...]")
    return found


def _fit(
    found: Sequence[Any],
    what: str,
    looked: Callable[[Any, Places], Message],
    places: Places,
    faults: list[tuple[str, str]],
) -> list[tuple[Any, Message]]:
    """The usable items, each with its description."""
    fit = []
    for thing in found:
        try:
            fit.append((thing, looked(thing, places)))
        except BaseException as error:  # noqa: BLE001 - as above
            words = str(error) if isinstance(error, UnusableItem) else describe_error(error)
            place = places.of_error(error) or places.of_code(
                getattr(thing, "collect" if what == "watcher" else "execute", None)
            )
            faults.append((f"{what}:{_called(thing)}", with_place(f"left out: {words}", place)))
    return fit


def _called(thing: Any) -> str:
    cls = thing if isinstance(thing, type) else type(thing)
    name = getattr(thing, "name", None) or getattr(thing, "action", None)
    return name[:200] if isinstance(name, str) else cls.__name__


def _watcher(thing: Any, places: Places) -> Message:
    _has(thing, asyncronous=("collect",), plain=("should_wake",))
    return {
        "name": thing.name,
        "key": thing.key,
        "interval": thing.interval,
        "timeout": thing.timeout,
        "nudged": isinstance(getattr(thing, "nudge", None), asyncio.Event),
        "place": places.of_code(thing.collect),
    }


def _executor(thing: Any, places: Places) -> Message:
    _has(thing, asyncronous=("execute", "verify"), plain=("policy", "check"))
    if not (isinstance(thing.params, type) and issubclass(thing.params, BaseModel)):
        raise UnusableItem("its params are no pydantic model; write: class Params(BaseModel)")
    return {
        "action": thing.action,
        "policy": _policy(thing),
        "place": places.of_code(thing.execute),
    }


def _has(thing: Any, asyncronous: Sequence[str], plain: Sequence[str]) -> None:
    if isinstance(thing, type):
        raise UnusableItem(f"a class is listed; list one of it: {thing.__name__}()")
    for name in (*asyncronous, *plain):
        if not callable(getattr(thing, name, None)):
            raise UnusableItem(f"it has no method {name!r}")
        if name in asyncronous and not inspect.iscoroutinefunction(getattr(thing, name)):
            raise UnusableItem(f"{name!r} must be written with async def")


def _policy(thing: Any) -> Message | None:
    """The description of its policy, if it is the same without params; None if it needs some."""
    try:
        params = thing.params.model_validate({})
    except ValidationError:
        params = thing.params.model_construct()
    try:
        policy = thing.policy(params)
    except AttributeError:
        return None
    return describe_policy(policy)


def describe_policy(policy: Any) -> Message:
    """A policy as JSON values. Raises UnusableItem for what is no policy."""
    if not isinstance(policy, Policy):
        raise UnusableItem(f"its policy is {type(policy).__name__}; return Policy(...)")
    return {**asdict(policy), "safety": policy.safety.value}
