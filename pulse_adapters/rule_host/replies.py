"""Validates a child's replies. Raises ValueError for what a correct child never sends."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from pulse_adapters.workers.source_locations import with_place
from pulse_core.model.kinds import Effect
from pulse_core.model.payload import describe
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import NEVER_MS, Verdict
from pulse_core.ports import EngineFault, FoldResult, LoadedRevision, ReplayBatch, UserProjectionState

MOST_EFFECTS = 1_000
_MOST, _WORDS = 2_000, 2_000
Reply = Mapping[str, Any]


def fold_result_of(reply: Reply, tick: int, defined: Mapping[str, str]) -> FoldResult:
    """The result of folding this tick; an invalid effect is a fault of its rule. defined: the place of each rule."""
    effects, faults = [], [*faults_of(reply)]
    for one in _list(reply, "effects", MOST_EFFECTS):
        try:
            effects.append(Effect.model_validate({**_object(one), "survival": False, "tick": tick}))
        except ValidationError as error:
            rule = str(one.get("rule", ""))[:_WORDS]
            words = f"ValidationError: {describe(error)}"[:_WORDS]
            faults.append(EngineFault(f"rule:{rule}", with_place(words, defined.get(rule, ""))))
    verdict = Verdict(
        tuple(effects),
        max(1, min(_number(reply.get("tick_ms")), NEVER_MS)),
        tuple(_text(note) for note in _list(reply, "notes")),
    )
    layers = tuple(_layer(one) for one in _list(reply, "layers"))
    return FoldResult(verdict, layers, tuple(faults))


def replay_results_of(reply: Reply, most: int, defined: Mapping[str, str]) -> ReplayBatch:
    """The results of the first of these ticks, one at least."""
    done = _number(reply.get("done"))
    if not 0 < done <= most:
        raise ValueError("another number of ticks than were asked for")
    told = [_row(one, 2) for one in _list(reply, "told")]
    outcomes = [_row(one, 3) for one in _list(reply, "outcomes")]
    return ReplayBatch(
        {_number(tick): fold_result_of(one, _number(tick), defined) for tick, one in told},
        {(_text(rule), _text(outcome)): _number(times) for rule, outcome, times in outcomes},
        done=done,
    )


def faults_of(reply: Reply) -> tuple[EngineFault, ...]:
    """The faults in the reply."""
    return tuple(EngineFault(*map(_text, _row(one, 2))) for one in _list(reply, "faults"))


def loaded_of(reply: Reply) -> LoadedRevision:
    """What the child has loaded."""
    versions = {_text(name): _text(_row(one, 2)[0]) for name, one in _table(reply, "projections").items()}
    return LoadedRevision(
        rules=_texts(reply, "rules"),
        projections=versions,
        watchers=_texts(reply, "watchers"),
        executors=_texts(reply, "executors"),
        plugins=_texts(reply, "plugins"),
        sandbox=_table(reply, "sandbox"),
    )


def units_of(reply: Reply) -> Sequence[EngineFault]:
    """The name of each unit, and where it is defined."""
    whose = [f"rule:{name}" for name in _texts(reply, "rules")]
    whose += [f"projection:{name}" for name in _table(reply, "projections")]
    return [EngineFault(*both) for both in zip(whose, _texts(reply, "defined"), strict=True)]


def kinds_of(reply: Reply) -> Mapping[str, frozenset[str] | None]:
    """The kinds of events that each author's projection folds, None for all."""
    kinds = {name: _row(one, 2)[1] for name, one in _table(reply, "projections").items()}
    return {name: None if wanted is None else _kinds(wanted) for name, wanted in kinds.items()}


def _kinds(wanted: Any) -> frozenset[str]:
    if not isinstance(wanted, list):
        raise ValueError("kinds that are no list")
    return frozenset(map(_text, wanted))


def roots_of(reply: Reply) -> Mapping[str, str]:
    """The folders of the authors' code: their display names by path."""
    return {_text(path): _text(words) for path, words in _table(reply, "roots").items()}


def kept_value_of(reply: Reply) -> UserProjectionState | None:
    """The state of an author's projection."""
    if reply.get("kept") is None:
        return None
    version, seq, state = _row(reply["kept"], 3)
    if not isinstance(state, str):
        raise ValueError("a state that is no text")
    return UserProjectionState(_text(version), _number(seq), state)


def _layer(one: Any) -> LayerOutcome:
    rule, outcome, notes, took_us = _row(one, 4)
    if not isinstance(notes, list):
        raise ValueError("notes that are no list")
    return LayerOutcome(_text(rule), _text(outcome), tuple(map(_text, notes)), _number(took_us))


def _list(reply: Reply, name: str, most: int = _MOST) -> list[Any]:
    found = reply.get(name)
    if not isinstance(found, list) or len(found) > most:
        raise ValueError(f"{name} that are no list of at most {most:,}")
    return found


def _texts(reply: Reply, name: str) -> tuple[str, ...]:
    return tuple(map(_text, _list(reply, name)))


def _table(reply: Reply, name: str) -> dict[str, Any]:
    found = reply.get(name)
    if not isinstance(found, dict):
        raise ValueError(f"{name} that are no object")
    return found


def _object(one: Any) -> dict[str, Any]:
    if not isinstance(one, dict):
        raise ValueError("an effect that is no object")
    return one


def _row(one: Any, size: int) -> list[Any]:
    if not isinstance(one, list) or len(one) != size:
        raise ValueError(f"something else than {size} values")
    return one


def _text(one: Any) -> str:
    if not isinstance(one, str):
        raise ValueError("something else than a text")
    return one[:_WORDS]


def _number(one: Any) -> int:
    if not isinstance(one, int) or isinstance(one, bool) or not -(2**63) <= one < 2**63:
        raise ValueError("something else than a number of 64 bits")
    return one
