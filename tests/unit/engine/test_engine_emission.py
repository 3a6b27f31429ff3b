"""What the whole fold emits: nothing twice, though its snapshots may be older than what it emitted last."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.model.tick import NOBODY
from pulse_core.model.verdict import Verdict
from pulse_core.ports.engine import FoldResult
from pulse_core.projections.effects import Effects, after
from pulse_core.projections.state import Snapshot, State
from pulse_core.rules import Inner
from pulse_core.tick import RuleFolds
from tests.events import event

WISH = Effect(action="notify", key="my:wish", params={"title": "a", "text": "b"}, rule="own")


class Log:
    """Takes wishes, but for those whose key it refuses."""

    def __init__(self, refused: Collection[str] = ()) -> None:
        self.refused, self.taken = refused, list[tuple[str, int | None]]()

    async def __call__(self, effects: Sequence[Effect]) -> Collection[str]:
        recorded = [effect for effect in effects if effect.key not in self.refused]
        self.taken += [(effect.key, effect.tick) for effect in recorded]
        return [effect.key for effect in recorded]


async def wishing(prev: Snapshot, curr: Snapshot) -> FoldResult:
    return FoldResult(Verdict((WISH.model_copy(update={"tick": curr.tick}),)), commit="abc")


def at(tick: int, effects: Effects | None = None) -> Snapshot:
    return Snapshot(tick, Moment(tick, "boot", tick), state=State(effects=effects or Effects()))


OPEN = after(Effects(), [event(1, WISH, subject=WISH.key)])
SETTLED = Effects(settled_at={"my:wish": Moment(4, "boot", 4)})


async def test_what_was_emitted_is_not_emitted_again_by_a_snapshot_that_does_not_know_of_it() -> None:
    log = Log()
    folding = RuleFolds((), wishing, log)
    for curr in (at(1), at(2), at(3, OPEN), at(5, SETTLED), at(6, SETTLED)):
        await folding.whole(curr, curr)
    assert log.taken == [("my:wish", 1), ("my:wish", 5)]


async def test_what_was_settled_before_the_snapshot_was_taken_is_another_wish() -> None:
    log = Log()
    folding = RuleFolds((), wishing, log)
    later = replace(SETTLED, settled_at={"my:wish": Moment(7, "boot", 7)})
    for curr in (at(5, SETTLED), at(6, SETTLED), at(8, later)):
        await folding.whole(curr, curr)
    assert log.taken == [("my:wish", 5), ("my:wish", 8)]


async def test_a_reflex_that_knows_more_does_not_let_the_older_snapshot_emit_again() -> None:
    log = Log()
    folding = RuleFolds((), wishing, log)
    await folding.whole(at(1), at(1))
    await folding.reflex(at(3, OPEN), at(3, OPEN))
    await folding.whole(at(1), at(2))
    assert log.taken == [("my:wish", 1)]


async def test_a_fold_says_who_was_asked_and_what_was_really_recorded() -> None:
    folded = await RuleFolds((), wishing, Log()).whole(at(1), at(1))
    assert (folded.engine, [effect.key for effect in folded.emitted]) == ("abc", ["my:wish"])
    folded = await RuleFolds((), wishing, Log(refused=["my:wish"])).whole(at(1), at(1))
    assert (folded.engine, folded.emitted) == ("abc", ())
    assert (await RuleFolds((), None, Log()).whole(at(1), at(1))).engine == NOBODY


async def decorating(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """A survival rule that changes what comes from inside, and so copies it."""
    verdict = await inner(prev, curr)
    changed = (one.model_copy(update={"reason": "looked at"}) for one in verdict.effects)
    return replace(verdict, effects=tuple(changed))


async def test_what_a_survival_rule_copies_is_still_the_engines_and_is_emitted() -> None:
    log = Log()
    folded = await RuleFolds((decorating,), wishing, log).whole(at(1), at(1))
    assert log.taken == [("my:wish", 1)]
    assert [(one.rule, one.reason, one.survival) for one in folded.emitted] == [("own", "looked at", False)]
