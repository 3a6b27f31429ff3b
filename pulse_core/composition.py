"""Composes the core and its capabilities: one fold, one set of kinds, one root of the settings, one order of rules.

Importing this module composes them, once for a process: the kinds of all capabilities can be decoded from then on, and
their settings are fields of `Settings`. Everything here is a value that never changes later.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from pydantic import BaseModel

from pulse_core import actions
from pulse_core.actions import BUILT_IN, UNRESTRICTED, ActionDeclaration, parsed_params
from pulse_core.capabilities import CAPABILITIES, NEEDS
from pulse_core.capability import Capability, Check, SurvivalRule
from pulse_core.model import payload
from pulse_core.model.errors import Refused, UnknownName, describe_error
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Effect
from pulse_core.model.names import OUTWARD
from pulse_core.model.payload import Role
from pulse_core.projections.conditions import Condition
from pulse_core.projections.fold import Fold
from pulse_core.projections.state import CORE, Snapshot, State
from pulse_core.rules import Rule
from pulse_core.rules.measurements import described
from pulse_core.rules.onion import rule_name
from pulse_core.rules.survival import survival_rules
from pulse_core.rules.survival.error_escalate import EXPLAINS
from pulse_core.rules.survival.holds import Hold
from pulse_core.settings.settings import (
    Settings as Settings,  # the root, complete once this module is imported
)


def load_capabilities(names: Sequence[str]) -> tuple[Capability, ...]:
    """Load the capabilities of these names."""
    found: dict[str, Capability] = {
        name: import_module(f"pulse_core.{name}.capability").CAPABILITY for name in names
    }
    for name, capability in found.items():
        if capability.name != name:
            raise TypeError(f"the capability in pulse_core/{name}/ calls itself {capability.name!r}")
    return tuple(found.values())


def order_rules(core: Sequence[Rule], more: Sequence[SurvivalRule]) -> tuple[Rule, ...]:
    """The survival rules with those of capabilities in their places, outermost first."""
    ordered = list(core)
    for rule, inside_of in reversed(more):
        place = [rule_name(one) for one in core].index(inside_of)
        ordered.insert(ordered.index(core[place]) + 1, rule)
    return tuple(ordered)


class AskedHolds(NamedTuple):
    """What capabilities hold back at a moment, and why some fail to say it, by their names: these hold nothing back."""

    holds: Sequence[Hold]
    faults: Mapping[str, str]


def ask_holds(curr: Snapshot) -> AskedHolds:
    """What is held back at this moment, and on whose behalf."""
    holds, faults = list[Hold](), dict[str, str]()
    for capability in LOADED:
        try:
            holds += tuple(capability.holds(curr)) if capability.holds else ()
        except Exception as error:  # noqa: BLE001 - survival goes on without it
            faults[capability.name] = f"what it holds back can't be asked for: {describe_error(error)}"
    return AskedHolds(holds, faults)


def current_holds(curr: Snapshot) -> Sequence[Hold]:
    """What is held back at this moment, and on whose behalf; a capability that fails to say it holds nothing back."""
    return ask_holds(curr).holds


def set_aside(state: State) -> Mapping[str, str]:
    """The capabilities whose rules are left out and which admit nothing, and why: a projection of theirs has raised, or
    one of those that they need."""
    broken = {
        one.name: f"its projection {projection.name} raised {state.broken[projection.name]}"
        for one in LOADED
        for projection in one.projections
        if projection.name in state.broken
    }
    needed = {name: one for name, needs in NEEDS.items() for one in needs if one in broken}
    return {**{name: f"it needs {one}" for name, one in needed.items()}, **broken}


def faults_of_capabilities(state: State, asked: AskedHolds) -> Mapping[str, str]:
    """The capabilities that are set aside, or fail to say what they hold back, and why."""
    return {**asked.faults, **set_aside(state)}


def rules_in_force(rules: Sequence[Rule], state: State) -> Sequence[Rule]:
    """These rules without those of capabilities that are set aside."""
    if not state.broken:  # as nearly always
        return rules
    left_out = {rule for one in LOADED if one.name in set_aside(state) for rule in one.rules}
    return [rule for rule in rules if rule not in left_out]


def _admission(name: str, check: Check) -> Check:
    """This check of a capability, which admits nothing while that is set aside: its projections miss events."""

    def admit(draft: Draft, role: Role, state: State, settings: Settings) -> None:
        if state.broken and (why := set_aside(state).get(name)):
            raise Refused(f"{name} is set aside: {why}")
        check(draft, role, state, settings)

    return admit


def declaration_of(action: str) -> ActionDeclaration:
    """The declaration of this action."""
    return ACTIONS.get(action, UNRESTRICTED)


def effect_fault(effect: Effect, own: Mapping[str, type[BaseModel]]) -> str:
    """Why no executor would carry this out; empty if one would. own: the params of the engine's own actions."""
    known = {**{name: one.params for name, one in ACTIONS.items()}, **own}
    if effect.action not in known:
        return str(UnknownName("executor", effect.action, known))
    try:
        parsed_params(known[effect.action], effect)
    except Refused as error:
        return str(error)
    return ""


def is_reserved(key: str) -> bool:
    """Whether only survival rules may request effects with this key."""
    is_own = declaration_of(key.partition(":")[0]).is_reserved or key.startswith(RESERVED)
    return is_own or _is_notice(key, TOPICS)


def is_of_package(key: str) -> bool:
    """Whether only rules of the package may request effects with this key: survival's, or those of capabilities."""
    return is_reserved(key) or _is_notice(key, OWN_TOPICS)


def _is_notice(key: str, topics: frozenset[str]) -> bool:
    head, _, rest = key.partition(":")
    return head in OUTWARD and rest.partition(":")[0] in topics


LOADED = load_capabilities(CAPABILITIES)
"""The capabilities, outermost first."""

payload.register(kind for capability in LOADED for kind in capability.kinds)
payload.close_registry()
Settings.extend(group for capability in LOADED for group in capability.settings)

KINDS: Mapping[str, type[payload.Payload]] = payload.KINDS
"""Every kind of event by its name."""

FOLD = Fold((*CORE, *(projection for capability in LOADED for projection in capability.projections)))
"""The fold of all projections."""

ADMITS: Mapping[str, Check] = {
    kind: _admission(capability.name, check)
    for capability in LOADED
    for kind, check in capability.admits.items()
}
"""The capabilities' own checks of drafts from outside, by kind."""

ALONE: Mapping[str, str] = {kind: capability.name for capability in LOADED for kind in capability.alone}
"""The kinds of which a capability, named here, has one recorded at a time."""

SURVIVAL = order_rules(
    survival_rules(
        current_holds,
        (*EXPLAINS, *(((name,), lines) for one in LOADED for name, lines in one.explains.items())),
    ),
    [rule for capability in LOADED for rule in capability.survival_rules],
)
"""The rules of the reflex, outermost first."""

RULES: tuple[Rule, ...] = tuple(rule for capability in LOADED for rule in capability.rules)
"""The capabilities' rules between survival and plugins, outermost first; only the whole fold has them."""

ALL_RULES = (*SURVIVAL, *RULES)
"""All rules of the package in the order of the onion: what plugins and an engine are folded in."""

OWN_NAMES = frozenset(map(rule_name, ALL_RULES))
"""Their names, which no rule of others may have: it would pass for one of these."""

TOPICS = actions.TOPICS.union(*(capability.topics for capability in LOADED))
"""Topics of survival rules' notices, those of capabilities included."""

OWN_TOPICS = frozenset[str]().union(*(capability.own_topics for capability in LOADED))
"""Topics of notices of capabilities' other rules."""

RESERVED = tuple(beginning for capability in LOADED for beginning in capability.reserved)
"""Beginnings of other keys that only survival rules may request."""

ACTIONS: Mapping[str, ActionDeclaration] = {
    one.name: one for one in (*BUILT_IN, *(action for capability in LOADED for action in capability.actions))
}
"""Every action that is declared, by its name."""


def programs_of_capabilities(curr: Snapshot) -> list[str]:
    """What capabilities have started and runs now, which goes on without a daemon."""
    return [words for one in LOADED for words in _lines(one.name, one.programs, curr)]


def condition_words(name: str, condition: Condition, curr: Snapshot) -> str:
    """What is wrong by what was seen last, in words."""
    try:
        newest = [one.seen(name, condition, curr) for one in LOADED]
    except Exception:  # noqa: BLE001 - then by what raised it
        newest = []
    return next(filter(None, newest), "") or described(name, condition, curr)


def status_lines(curr: Snapshot) -> dict[str, list[str]]:
    """The status lines of the capabilities, by name; none for one without lines."""
    said = {one.name: _lines(one.name, one.status, curr) for one in LOADED if one.status}
    return {name: lines for name, lines in said.items() if lines}


def _lines(name: str, told: Callable[[Snapshot], Iterable[str]], curr: Snapshot) -> list[str]:
    """What a capability tells people, or that it fails to."""
    try:
        return list(told(curr))
    except Exception as error:  # noqa: BLE001 - people are told the rest
        return [f"{name} can't say how it stands: {describe_error(error)}"]
