"""Recorded ticks are folded in a quicker way, which comes to the same and is guarded no less."""

import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

from pulse_adapters.rule_host.host import ChildRuleHost
from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Sample, Window
from pulse_core.ports.engine import RecordedInput
from pulse_core.projections.state import Snapshot
from pulse_core.settings.settings import Settings
from tests.integration.rule_host.rule_host_attacks import ATTACKS
from tests.integration.rule_host.rule_host_engines import (
    DEADLINE,
    HASTY,
    SETTINGS,
    at,
    folded,
    host_supervisor,
    place_of,
    rule,
    written,
)
from tests.long_form import sample, sampled

PATIENCE = 5.0
"""Seconds that a busy machine may add to anything."""
PASSING = rule("return await inner(prev, curr)", "passing")
WISH = 'Effect(action="notify", key=f"{KEY}", params={"title": "a", "text": "b" * LONG})'


def wishing(key: str, long: int = 1, when: str = "True") -> str:
    wish = WISH.replace("{KEY}", key).replace("LONG", str(long))
    body = f"verdict = await inner(prev, curr)\nreturn verdict.plus({wish}) if {when} else verdict"
    return rule(body, "wishing")


async def replayed(
    host: ChildRuleHost, ticks: list[RecordedInput]
) -> tuple[Counter[tuple[str, str]], list[str]]:
    """How often each rule did what, and what was wished and went wrong, by tick."""
    outcomes, found = Counter[tuple[str, str]](), []
    for part in await host.replay(ticks):
        outcomes.update(part.outcomes)
        for tick, fold_result in part.fold_results.items():
            found += [f"{tick} {effect.key}" for effect in fold_result.verdict.effects]
            found += [f"{tick} {fault.whose} {fault.message}" for fault in fold_result.faults]
        if part.end:
            found.append(f"end {part.end.whose} {part.end.message}")
    return outcomes, found


def ticks(count: int, settings: Settings = SETTINGS) -> list[RecordedInput]:
    return [RecordedInput((), at(number, settings=settings)) for number in range(2, 2 + count)]


ODD = {
    "asks twice": "await inner(prev, curr); return await inner(prev, curr)",
    "bypasses": "return Verdict()",
    "answers a pair": "return (await inner(prev, curr)).effects, 70",
    "notes": "verdict = await inner(prev, curr); return Verdict(verdict.effects, 50, (*verdict.notes, str(curr.tick)))",
    "answers nonsense": "return 7",
    "swallows": "try:\n    return await inner(prev, curr)\nexcept BaseException:\n    return Verdict()",
    "leaves": "raise SystemExit(3)",
    "waits": "class Pause:\n    def __await__(self):\n        yield\nawait Pause()",
    "wishes seldom": "verdict = await inner(prev, curr)\nif curr.tick % 3: return verdict\n"
    f"return verdict.plus({WISH.replace('{KEY}', 'odd').replace('LONG', '1')})",
    "drops": "return Verdict()._replace() if hasattr(Verdict, '_replace') else Verdict((), 40)",
    "fails seldom": "if curr.tick % 4 == 0: raise ValueError(curr.tick)\nreturn await inner(prev, curr)",
    "compares": "assert prev.tick == curr.tick - 1, (prev.tick, curr.tick)\nreturn await inner(prev, curr)",
}


ALONE = ("bypasses", "drops", "leaves")
"""Those that hide others."""


@pytest.mark.parametrize(
    "odd", [*([one] for one in sample(ALONE[:1], ALONE)), [one for one in ODD if one not in ALONE]]
)
async def test_a_replay_comes_to_what_live_folds_came_to(tmp_path: Path, odd: list[str]) -> None:
    inside = wishing("in-{curr.tick % 2}", when="curr.tick % 5 == 0")
    rules = "".join(rule(ODD[one], one.replace(" ", "_")) for one in odd)
    revision = written(tmp_path, PASSING + rules + inside)
    outcomes, said = Counter[tuple[str, str]](), []
    async with host_supervisor(revision) as host:
        for number in range(2, 14):
            fold_result = await folded(host, number)
            outcomes.update((layer.rule, layer.outcome) for layer in fold_result.layers)
            said += [f"{number} {effect.key}" for effect in fold_result.verdict.effects]
            said += [f"{number} {fault.whose} {fault.message}" for fault in fold_result.faults]
    async with host_supervisor(revision) as host:
        assert await replayed(host, ticks(12)) == (outcomes, said)


SPINS = {
    "to its end": "    while True: pass  # here",
    "in a library that makes another exception of its stop": """    try:
        while True: str(7)
    except BaseException:
        import signal; signal.setitimer(signal.ITIMER_REAL, 0)  # so that it is stopped once
        raise ValueError("String should match") from None  # here""",
}


@pytest.mark.wall_clock
@pytest.mark.parametrize("how", SPINS)
async def test_a_rule_that_spins_is_named_and_the_others_go_on(tmp_path: Path, how: str) -> None:
    spins = rule(f"if curr.tick == 4:\n{SPINS[how]}\nreturn await inner(prev, curr)", "spins")
    async with host_supervisor(written(tmp_path, PASSING + spins)) as host:
        outcomes, said = await replayed(host, ticks(6, HASTY))
    assert said == [f"4 rule:spins took too long, and was stopped ({place_of(PASSING + spins)})"]
    assert outcomes == {("passing", "passed"): 6, ("spins", "passed"): 5, ("spins", "error"): 1}


async def test_an_import_that_is_stopped_half_way_is_made_anew(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "part.py").write_text("__all__ = ['X']\nX = 1\n")
    (slow / "__init__.py").write_text(
        "import time\nfrom .part import *\nends = time.monotonic() + 0.06\nwhile time.monotonic() < ends: pass\n"
        "NAMES = part.__all__\n"
    )
    lazy = rule("import slow\nassert slow.NAMES == ['X']\nreturn await inner(prev, curr)", "lazy")
    async with host_supervisor(written(tmp_path, PASSING + lazy)) as host:
        outcomes, said = await replayed(host, ticks(4))
    assert (said, outcomes[("lazy", "passed")]) == ([], 4)


@pytest.mark.wall_clock
async def test_a_rule_that_will_not_be_stopped_is_not_believed(tmp_path: Path) -> None:
    body = """
    import time
    ends = time.monotonic() + 0.1
    while time.monotonic() < ends:
        try:
            while time.monotonic() < ends: pass
        except BaseException: pass
    return await inner(prev, curr)
    """
    async with host_supervisor(written(tmp_path, rule(textwrap.dedent(body), "stubborn"))) as host:
        outcomes, said = await replayed(host, ticks(2, HASTY))
    assert (outcomes, said) == (
        {("stubborn", "passed"): 2},
        [],
    )  # it is within its deadline, if not within ours


@pytest.mark.parametrize("how", ["os._exit(3)", "os.close(3)", "import ctypes; ctypes.string_at(0)"])
async def test_a_rule_that_ends_its_host_is_named(tmp_path: Path, how: str) -> None:
    ends = rule(f"if curr.tick == 4:\n    {how}\nreturn await inner(prev, curr)", "ends", "import os")
    async with host_supervisor(written(tmp_path, PASSING + ends)) as host:
        _, (said,) = await replayed(host, ticks(6))
        assert said.startswith("end rule:ends its host")
        assert not host.alive


async def test_what_is_more_than_a_reply_holds_comes_in_several(tmp_path: Path) -> None:
    async with host_supervisor(written(tmp_path, wishing("k-{curr.tick}", 30_000))) as host:
        parts = await host.replay(ticks(40))
        assert len(parts) > 2
        assert sum(part.done for part in parts) == 40
        keys = [
            effect.key
            for part in parts
            for one in part.fold_results.values()
            for effect in one.verdict.effects
        ]
    assert keys == [f"k-{number}" for number in range(2, 42)]


async def test_who_was_not_asked_then_is_not_asked(tmp_path: Path) -> None:
    every = [
        RecordedInput((), at(2)),
        RecordedInput((), at(3), frozenset({"wishing"})),
        RecordedInput((), at(4)),
    ]
    async with host_supervisor(written(tmp_path, PASSING + wishing("k-{curr.tick}"))) as host:
        outcomes, said = await replayed(host, every)
    assert said == ["2 k-2", "4 k-4"]
    assert outcomes[("passing", "passed")] == 3


def sensed(tick: int, *ids: int) -> Snapshot:
    samples = tuple(Sample(id_, "k", Moment(id_, "boot", id_), {"x": id_}) for id_ in ids)
    return at(tick, windows={"k": Window(samples)})


async def test_prev_is_the_one_that_is_given_even_if_the_host_never_folded_it(tmp_path: Path) -> None:
    body = "return Verdict(notes=(str(prev.tick), str(prev.window('k').values('x')), str(curr.window('k').values('x'))))"
    async with host_supervisor(written(tmp_path, rule(body)), sensed(1, 1)) as host:
        first = await host.fold(sensed(4, 1, 2), sensed(5, 1, 2, 3))
        second = await host.fold(sensed(5, 1, 2, 3), sensed(6, 2, 3))
    assert first.verdict.notes == ("4", "(1, 2)", "(1, 2, 3)")
    assert second.verdict.notes == ("5", "(1, 2, 3)", "(2, 3)")


async def test_a_window_that_reaches_farther_back_than_the_one_before_is_whole(tmp_path: Path) -> None:
    """As after a start: the last snapshot is remembered with the last of its samples alone."""
    body = "return Verdict(notes=(str(curr.window('k').values('x')),))"
    async with host_supervisor(written(tmp_path, rule(body)), sensed(1, 4)) as host:
        fold_result = await host.fold(sensed(1, 4), sensed(2, 2, 3, 4, 5))
    assert fold_result.verdict.notes == ("(2, 3, 4, 5)",)


@pytest.mark.wall_clock
@pytest.mark.parametrize("name", sampled(ATTACKS, 14))
async def test_an_attack_on_a_replay_costs_its_time_at_most_and_is_named(name: str, tmp_path: Path) -> None:
    attack = ATTACKS[name]
    async with host_supervisor(written(tmp_path, PASSING + attack.source)) as host:
        began = time.monotonic()
        (part,) = await host.replay(ticks(1, attack.settings))
        assert attack.settings is not HASTY or time.monotonic() - began < DEADLINE + PATIENCE
        faults = (part.end,) if part.end else part.fold_results[2].faults if part.fold_results else ()
        assert host.alive is (part.end is None)
        says = attack.says.removesuffix("1,000 ms")
        blamed = [fault for fault in faults if fault.whose == attack.whose and says in fault.message]
        assert blamed or attack.whose in ("", "*"), faults
        assert part.end is None or not attack.lives or not attack.exact
