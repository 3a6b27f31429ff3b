"""Loads an engine's watchers and executors; here the authors' code, except that of rules, runs for the first time."""

import asyncio
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pkgutil import resolve_name
from typing import Any, TypeVar

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


class ActionContents:
    """The usable watchers by name and executors by action, and what the daemon is told of them and of the others."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.watchers: dict[str, Any] = {}
        self.executors: dict[str, Any] = {}
        self.told: dict[str, list[Any]] = {"watchers": [], "executors": [], "faults": []}

    def take(self, source: Any, watchers: str, executors: str) -> None:
        """Add what a plugin or the engine lists by these names, as far as it can be used."""
        listed = _listed(source, watchers), _listed(source, executors)
        for thing in listed[0]:
            self._add(thing, "watcher", "name", self.watchers, _watcher, "collect")
        for thing in listed[1]:
            self._add(thing, "executor", "action", self.executors, _executor, "execute")

    def _add(
        self, thing: Any, what: str, name: str, known: dict[str, Any],
        look: Callable[[Any, Places], Message], method: str,
    ) -> None:  # fmt: skip
        try:
            described = look(thing, self._places)
            if described[name] in known:
                raise UnusableItem(f"another {what} has the {name} {described[name]!r}")
        except BaseException as error:  # noqa: BLE001 - somebody else's code, which may raise what it likes
            words = str(error) if isinstance(error, UnusableItem) else describe_error(error)
            place = self._places.of_error(error) or self._places.of_code(getattr(thing, method, None))
            self.told["faults"].append((f"{what}:{_called(thing)}", with_place(f"left out: {words}", place)))
        else:
            known[described[name]] = thing
            self.told[f"{what}s"].append(described)


def load(root: str, plugins: Mapping[str, str], places: Places) -> ActionContents:
    """Import plugins, then the engine. Raises ActionsNotLoadable; a single unusable item is reported and left out.

    plugins: `module:attribute` by name; one that fails is left out as well.
    """
    found = ActionContents(places)
    for name, entry in plugins.items():
        try:
            found.take(_guarded(partial(resolve_name, entry), places), "watchers", "executors")
        except ActionsNotLoadable as error:
            found.told["faults"].append((f"plugin:{name}", str(error)))
    if not os.path.isfile(os.path.join(root, _FILE)):
        raise ActionsNotLoadable(f"there is no {_FILE} in this revision")
    sys.path.insert(0, root)
    engine, left_out = _guarded(partial(run_lists, os.path.join(root, _FILE)), places)
    for line in left_out:
        words = with_place(f"what it lists with rules {WHY}", f"{_FILE}:{line}")
        found.told["faults"].append(("engine", words))
    found.take(engine, "WATCHERS", "EXECUTORS")
    return found


def _guarded(work: Callable[[], T], places: Places) -> T:
    """What authors' code comes to. Raises ActionsNotLoadable."""
    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - as above
        raise ActionsNotLoadable(with_place(describe_error(error), places.of_error(error))) from None


def _listed(source: Any, name: str) -> Sequence[Any]:
    found = getattr(source, name, ())
    if not isinstance(found, list | tuple):
        raise ActionsNotLoadable(f"{name} is no list; write {name} = [...]")
    return found


def _called(thing: Any) -> str:
    name = getattr(thing, "name", None) or getattr(thing, "action", None)
    return name[:200] if isinstance(name, str) else getattr(thing, "__name__", type(thing).__name__)


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
    """A policy as JSON values, but for what survival's actions alone have. Raises UnusableItem for no policy."""
    if not isinstance(policy, Policy):
        raise UnusableItem(f"its policy is {type(policy).__name__}; return Policy(...)")
    told = {**asdict(policy), "safety": policy.safety.value}
    del told["slot"], told["outlasts_shortages"]
    return told
