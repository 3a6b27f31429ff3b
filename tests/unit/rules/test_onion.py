"""The laws of the onion."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import NEVER_MS, Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Inner, Rule, compose

NOW = Snapshot(1, Moment(1, "boot", 1))
LATER = Snapshot(2, Moment(2, "boot", 2))


def effect(key: str) -> Effect:
    return Effect(action="note", key=key)


def adding(key: str) -> Rule:
    async def rule(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        return (await inner(prev, curr)).plus(effect(key))

    rule.__name__ = f"adds_{key}"
    return rule


async def passing(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return await inner(prev, curr)


async def bypassing(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return Verdict((effect("alone"),))


async def dropping(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    await inner(prev, curr)
    return Verdict()


async def raising(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    raise ValueError("I am broken")


async def raising_late(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    await inner(prev, curr)
    raise ValueError("I am broken")


def folded(*rules: Rule, trace: list[LayerOutcome] | None = None) -> Verdict:
    return asyncio.run(compose(rules, trace=trace)(NOW, LATER))  # type: ignore[arg-type]


def keys(verdict: Verdict) -> list[str]:
    return [effect.key for effect in verdict.effects]


def test_an_onion_without_layers_is_quiet() -> None:
    assert folded() == Verdict((), NEVER_MS, ())


def test_the_first_rule_is_outermost() -> None:
    assert keys(folded(adding("outer"), adding("inner"))) == ["inner", "outer"]


def test_a_rule_that_bypasses_silences_everything_inside_it() -> None:
    assert keys(folded(adding("outer"), bypassing, adding("inner"))) == ["alone", "outer"]


@given(st.lists(st.integers(0, 3), max_size=6), st.integers(0, 6))
def test_a_passing_rule_changes_nothing_wherever_it_stands(names: list[int], place: int) -> None:
    rules: list[Rule] = [adding(str(name)) for name in names]
    assert keys(folded(*rules)) == keys(folded(*rules[:place], passing, *rules[place:]))


@pytest.mark.parametrize("broken", [raising, raising_late])
def test_a_rule_that_raises_is_skipped_and_its_inner_verdict_stands(broken: Rule) -> None:
    assert keys(folded(adding("outer"), broken, adding("inner"))) == ["inner", "outer"]


def test_a_rule_that_raises_late_does_not_ask_its_inner_rules_twice() -> None:
    asked = []

    async def counting(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        asked.append(1)
        return await inner(prev, curr)

    folded(raising_late, counting)
    assert len(asked) == 1


def test_a_rule_that_raises_is_told_with_its_error() -> None:
    trace: list[LayerOutcome] = []
    folded(raising, trace=trace)
    assert [(layer.rule, layer.outcome, layer.notes) for layer in trace] == [
        ("raising", "error", ("ValueError: I am broken",))
    ]


def test_a_transforming_rule_shows_its_inner_rules_another_snapshot() -> None:
    seen: list[int] = []

    async def transforming(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        return await inner(prev, prev)

    async def looking(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        seen.append(curr.tick)
        return await inner(prev, curr)

    folded(transforming, looking)
    assert seen == [NOW.tick]


def test_after_a_transforming_rule_raised_the_inner_verdict_is_of_the_true_snapshot() -> None:
    async def transforming(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        await inner(prev, prev)
        raise ValueError("too late")

    async def naming(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        return Verdict((effect(str(curr.tick)),))

    assert keys(folded(transforming, naming)) == [str(LATER.tick)]


def test_effects_bear_the_name_of_the_rule_that_added_them() -> None:
    verdict = folded(adding("a"), adding("b"))
    assert {effect.key: effect.rule for effect in verdict.effects} == {"a": "adds_a", "b": "adds_b"}


async def changing(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    verdict = await inner(prev, curr)
    return Verdict(tuple(one.model_copy(update={"reason": "changed"}) for one in verdict.effects))


def test_an_effect_that_is_copied_stays_its_owners() -> None:
    verdict = folded(changing, adding("a"))
    assert [(one.rule, one.reason) for one in verdict.effects] == [("adds_a", "changed")]


async def forging(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    return (await inner(prev, curr)).plus(Effect(action="note", key="f", rule="somebody", tick=99))


def test_nobody_wishes_in_the_name_of_a_rule_that_wished_nothing() -> None:
    verdict = folded(forging, adding("a"))
    assert [(one.rule, one.tick) for one in verdict.effects] == [("adds_a", 2), ("forging", 2)]


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [(passing, "passed"), (adding("x"), "added"), (dropping, "dropped"), (bypassing, "bypassed")],
)
def test_the_trace_says_what_each_layer_did(rule: Rule, outcome: str) -> None:
    trace: list[LayerOutcome] = []
    folded(rule, adding("inner"), trace=trace)
    assert [layer.outcome for layer in trace if layer.rule == rule.__name__] == [outcome]


def test_a_rule_may_answer_a_plain_pair() -> None:
    async def plain(prev: Snapshot, curr: Snapshot, inner: Inner) -> tuple[Sequence[Effect], int]:
        return [effect("plain")], 500

    verdict = folded(plain)
    assert (keys(verdict), verdict.tick_ms) == (["plain"], 500)


@pytest.mark.parametrize(
    ("nonsense", "words"),
    [
        (None, r"returned None \(is there a `return`\?\); it must return a Verdict or a pair"),
        (7, "returned a value of the type int"),
        ("effects", "returned a value of the type str"),
        ([effect("k")], "returned a value of the type list"),
        ((effect("k"), 5), "returned a value of the type tuple; .* a pair of a list of effects and tick_ms"),
        (([1], 5), "one of the effects is a value of the type int; each must be of the type Effect"),
        (([], "soon"), "tick_ms is a value of the type str; it must be a whole number"),
        (Verdict(tick_ms=float("nan")), "tick_ms is nan; it must be a whole number of milliseconds"),  # type: ignore[arg-type]
        (([], float("inf")), "tick_ms is inf; it must be a whole number"),
        (([], None), "tick_ms is None"),
        (Verdict(effect("k")), r"effects is a value of the type Effect; .* Verdict\(effects=\(one,\)\)"),  # type: ignore[arg-type]
        (Verdict(iter((effect("k"),))), "effects is a value of the type tuple_iterator"),  # type: ignore[arg-type]
        (Verdict(notes="a word"), "notes is a value of the type str"),  # type: ignore[arg-type]
        (Verdict(notes=(5,)), "one of the notes is a value of the type int"),  # type: ignore[arg-type]
    ],
)
def test_a_rule_that_answers_nonsense_is_skipped_and_told_what_would_work(nonsense: Any, words: str) -> None:
    async def confused(prev: Snapshot, curr: Snapshot, inner: Inner) -> Any:
        return nonsense

    trace: list[LayerOutcome] = []
    assert keys(folded(confused, adding("inner"), trace=trace)) == ["inner"]
    (note,) = next(layer.notes for layer in trace if layer.outcome == "error")
    assert re.search(f"TypeError: .*{words}", note), note


def test_a_rule_that_forgets_to_await_is_told_so() -> None:
    async def hasty(prev: Snapshot, curr: Snapshot, inner: Inner) -> Any:
        return unawaited

    unawaited = passing(NOW, LATER, compose(()))
    trace: list[LayerOutcome] = []
    folded(hasty, trace=trace)
    unawaited.close()
    assert "is there an `await` before `inner`?" in trace[0].notes[0]


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=8))
def test_the_shortest_patience_wins(patience: list[int]) -> None:
    def hurried(ms: int) -> Callable[[Snapshot, Snapshot, Inner], Awaitable[Verdict]]:
        async def rule(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
            return (await inner(prev, curr)).within(ms)

        return rule

    assert folded(*(hurried(ms) for ms in patience)).tick_ms == min(patience)
