"""The result of a rule: effects, when to tick again, and notes."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pulse_core.model.kinds import Effect

NEVER_MS = 86_400_000


class WithheldEffect(NamedTuple):
    """An effect that a rule wished for and that came to nothing, and why."""

    effect: "Effect"
    why: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Requested effects, milliseconds until the next tick at the latest, and notes for people.

    held: the conditions whose answer survival has to wait for, each with what holds it back, in the words of `held_by`.
    """

    effects: "tuple[Effect, ...]" = ()
    tick_ms: int = NEVER_MS
    notes: tuple[str, ...] = ()
    held: tuple[tuple[str, str], ...] = ()

    def plus(self, *effects: "Effect") -> "Verdict":
        """This verdict with more effects."""
        return Verdict((*self.effects, *effects), self.tick_ms, self.notes, self.held) if effects else self

    def within(self, tick_ms: int) -> "Verdict":
        """This verdict with a tick after `tick_ms` at the latest."""
        sooner = tick_ms < self.tick_ms
        return Verdict(self.effects, max(1, tick_ms), self.notes, self.held) if sooner else self

    def after_wait(self, wait_us: int | None) -> "Verdict":
        """This verdict with a tick as soon as these microseconds have passed; None: only after an event."""
        return self if wait_us is None else self.within(wait_us // 1000 + 1)

    def noting(self, *notes: str) -> "Verdict":
        """This verdict with reasons added."""
        return Verdict(self.effects, self.tick_ms, (*self.notes, *notes), self.held) if notes else self

    def holding(self, condition: str, by: str) -> "Verdict":
        """This verdict with what holds back the answer to a condition; empty: nothing."""
        return replace(self, held=(*self.held, (condition, by))) if by else self

    def merged(self, other: "Verdict") -> "Verdict":
        """This verdict with the effects and notes of another one, and the earlier tick of both."""
        return self.plus(*other.effects).within(other.tick_ms).noting(*other.notes)
