"""Loads an engine's rules and projections; here the authors' code runs for the first time."""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from pydantic_core import to_json

from pulse_adapters.rule_host.guarded_rule import Report
from pulse_adapters.rule_host.time_budget import LOADING, TimeBudget
from pulse_adapters.workers.source_locations import Places, describe_error, with_place
from pulse_core.composition import OWN_NAMES
from pulse_core.engine.plugin import Plugin, Projection
from pulse_core.rules.onion import Rule, rule_name

MOST_RULES = 1_000
_FILE = "engine.py"


class RulesNotLoadable(Exception):
    """The engine cannot be loaded; the message names the place."""


class RuleContents(NamedTuple):
    """What was found: rules by name, plugins' first (outermost); projections; names of watchers and executors."""

    rules: Mapping[str, Rule]
    projections: Mapping[str, Projection]
    watchers: tuple[str, ...]
    executors: tuple[str, ...]
    plugins: tuple[str, ...]


def load(
    root: str, plugins: Mapping[str, str], budget: TimeBudget, places: Places, report: Report
) -> RuleContents:
    """Load everything. Raises RulesNotLoadable for the engine; a plugin that fails is reported and left out.

    So is a plugin that has a name in common with the engine, or with an earlier plugin. root: the revision's folder;
    plugins: `module:attribute` by name.
    """
    if not os.path.isfile(os.path.join(root, _FILE)):
        raise RulesNotLoadable(f"there is no {_FILE} in this revision; it lists the RULES")
    sys.path.insert(0, root)
    engine = _guarded(partial(import_module, "engine"), budget, places)
    own: dict[str, Rule] = {}
    _add(own, _listed(engine, "RULES"), _FILE)
    rules: dict[str, Rule] = {}
    projections = dict(_projections(getattr(engine, "PROJECTIONS", {}), _FILE))
    loaded = []
    for place, (name, entry) in enumerate(plugins.items(), 1):
        try:
            more_rules, more_projections = _guarded(
                partial(load_plugin, entry), budget, places, LOADING + place
            )
            more = dict(rules)
            _add(more, more_rules, f"plugin {name}", besides=own)
            found = _projections(dict(more_projections), f"plugin {name}")
            if both := projections.keys() & found.keys():
                raise RulesNotLoadable(f"two projections are named {min(both)!r}; rename one (plugin {name})")
        except RulesNotLoadable as error:
            report(f"plugin:{name}", str(error))
        else:
            rules = more
            projections.update(found)
            loaded.append(name)
    return RuleContents(
        {**rules, **own},
        projections,
        tuple(str(getattr(one, "name", rule_name(one))) for one in _listed(engine, "WATCHERS")),
        tuple(str(getattr(one, "action", rule_name(one))) for one in _listed(engine, "EXECUTORS")),
        tuple(loaded),
    )


def _guarded(work: Callable[[], Any], budget: TimeBudget, places: Places, unit: int = LOADING) -> Any:
    """What authors' code comes to in its time. Raises RulesNotLoadable."""
    outer = budget.enter(unit)
    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - somebody else's code, which may raise what it likes
        words = "took too long to load" if budget.has_stopped(error) else describe_error(error)
        budget.hold()
        raise RulesNotLoadable(with_place(words, places.of_error(error))) from None
    finally:
        budget.back(outer)


def load_plugin(entry: str) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The rules and projections of what an entry point names: a `Plugin`, anything with RULES, a rule, or several."""
    from pkgutil import resolve_name  # few engines have plugins, and a host starts for one question

    thing: Any = resolve_name(entry)
    if isinstance(thing, Plugin):
        return list(thing.rules), dict(thing.projections)
    if hasattr(thing, "RULES"):
        return list(thing.RULES), dict(getattr(thing, "PROJECTIONS", {}))
    return [thing] if callable(thing) else list(thing), {}


def _listed(module: Any, name: str) -> Sequence[Any]:
    found = getattr(module, name, None if name == "RULES" else ())
    if isinstance(found, Mapping):
        found = tuple(found.values())
    if not isinstance(found, list | tuple):
        raise RulesNotLoadable(f"{name} is no list; write {name} = [...] ({_FILE})")
    return found


def _add(rules: dict[str, Rule], found: Iterable[Any], where: str, besides: Collection[str] = ()) -> None:
    for rule in found:
        if not callable(rule):
            raise RulesNotLoadable(
                f"{str(rule)[:100]!r} is no rule; list async functions of (prev, curr, inner) ({where})"
            )
        name = str(rule_name(rule))
        if name in OWN_NAMES:
            raise RulesNotLoadable(f"a rule is named {name!r}, as one of Pulse's own; rename it ({where})")
        if name in rules or name in besides:
            raise RulesNotLoadable(f"two rules are named {name!r}; rename one ({where})")
        if len(rules) >= MOST_RULES:
            raise RulesNotLoadable(f"more than {MOST_RULES:,} rules ({where})")
        rules[name] = rule


def _projections(found: Any, where: str) -> Mapping[str, Projection]:
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise RulesNotLoadable(
            f'PROJECTIONS is no dictionary by name; write {{"name": Projection(...)}} ({where})'
        )
    for name, projection in found.items():
        if not isinstance(projection, Projection):
            raise RulesNotLoadable(f"PROJECTIONS[{name!r}] is no Projection ({where})")
        try:
            to_json(projection.start)
        except ValueError as error:
            words = f"the start of PROJECTIONS[{name!r}] is nothing that JSON can hold: {error} ({where})"
            raise RulesNotLoadable(words) from None
    return found
