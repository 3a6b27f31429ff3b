"""What an author reads: lines that say what is new, and a screen that shows what stands."""

from dataclasses import replace
from typing import Any

from rich.console import Console

from pulse_core.app.engine.dev_reports import (
    DevRemark,
    DevReport,
    LoadRefused,
    RulesLoaded,
    TickSeen,
    TriedEffect,
    tick_report,
)
from pulse_core.model.kinds import Effect
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import Verdict, WithheldEffect
from pulse_core.ports.engine import EngineFault, FoldResult, LoadedRevision
from tests.integration.rule_host.rule_host_engines import at
from upulse_cli.views.dev import Lines, Standing, wished

WISH = TriedEffect(
    Effect(action="notify", key="my:wish", params={"title": "x"}, rule="own", reason="it is time"), "new"
)
LAYER = LayerOutcome("own", "added", ("a note",), 1_500)
FAULT = EngineFault("rule:own", "ValueError: no (rules/own.py:3)")
BEGAN = RulesLoaded(LoadedRevision(rules=("own",)), (), 0.12)


def seen(tick: int, **more: Any) -> TickSeen:
    return TickSeen(at(tick), (LAYER,), (WISH,), (), (), 0.002, False)._replace(**more)


def kinds(lines: Lines, news: DevReport) -> list[str]:
    return [line.split()[0] for line in lines.of(news)]


def test_what_goes_on_is_said_once_and_again_after_a_save() -> None:
    lines = Lines()
    assert kinds(lines, seen(1)) == ["wish", "note", "tick"]
    assert kinds(lines, seen(2)) == ["tick"]
    assert kinds(lines, seen(3, wishes=())) == ["tick"]
    assert kinds(lines, seen(4)) == ["wish", "tick"]
    assert kinds(lines, BEGAN) == ["loaded"]
    assert kinds(lines, seen(5)) == ["wish", "note", "tick"]


def test_errors_are_said_every_time() -> None:
    lines = Lines()
    for tick in (1, 2):
        assert "error" in kinds(lines, seen(tick, faults=(FAULT,)))


def test_what_a_rule_says_forges_no_line() -> None:
    forged = seen(1, layers=(replace(LAYER, notes=("one\nloaded    two\x1b[2J",)),))
    lines = list(Lines().of(forged))
    assert not any("\n" in line or "\x1b" in line for line in lines)


def drawn(standing: Standing) -> str:
    page = Console(width=120)
    with page.capture() as captured:
        page.print(standing.drawn())
    return captured.get()


def test_the_screen_shows_what_is_loaded_what_is_wished_and_what_is_wrong() -> None:
    standing = Standing("/home/staging")
    for news in (
        DevRemark("beside the daemon"),
        BEGAN,
        seen(7, faults=(FAULT,)),
        LoadRefused("no (own.py:1)", (), True),
    ):
        standing.take(news)
    page = drawn(standing)
    for words in (
        "/home/staging",
        "own in 120 ms",
        "a note",
        "my:wish by own: it is time",
        FAULT.message,
        "own.py:1",
    ):
        assert words in page
    standing.take(BEGAN)
    assert "refused" not in drawn(standing)


def test_a_wish_is_held_while_everything_is_paused_and_else_it_is_new() -> None:
    curr = at(1)
    paused = replace(curr, state=replace(curr.state, control=replace(curr.state.control, paused=curr.now)))
    fold_result = FoldResult(Verdict((WISH.effect,)), (LAYER,), (EngineFault("advice", "time.time"),))
    found = tick_report(fold_result, paused, paused, 0.1, False)
    assert [(wish.state, wish.why) for wish in found.wishes] == [
        ("held", "kill_switch: paused by : held back 1 effect")
    ]
    assert (found.faults, found.warnings) == ([], ["time.time"])
    assert [wish.state for wish in tick_report(fold_result, curr, curr, 0.1, False).wishes] == ["new"]
    withheld = FoldResult(withheld=(WithheldEffect(WISH.effect, "it was told already"),))
    (wish,) = tick_report(withheld, curr, curr, 0.1, False).wishes
    assert (wish.state, wish.why) == ("withheld", "it was told already")
    assert "(not requested: it was told already)" in wished(wish)
