"""Records the effects of rules with their claims in one commit."""

from collections.abc import Callable, Collection, Mapping, Sequence

from pulse_core.execute import ExecutorLoop
from pulse_core.model.errors import LogUnavailable, PulseError
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Effect
from pulse_core.model.payload import encode_checked
from pulse_core.ports import Executor
from pulse_core.record import Gate, Journal
from pulse_core.record.gate import check_executable


class EffectSubmitter:
    """Calling it records effects and, where a slot is free, begins them as soon as they are on disk.

    An effect that no executor could carry out is reported and left out: a rule's mistake must not fill the log.
    """

    def __init__(
        self,
        gate: Gate,
        journal: Journal,
        loop: ExecutorLoop,
        executors: Mapping[str, Executor],
        new_id: Callable[[], str],
        failed: Callable[[str, str], None],
    ) -> None:
        self.gate, self.journal, self.loop, self.executors = gate, journal, loop, executors
        self.new_id, self.failed = new_id, failed

    async def __call__(self, effects: Sequence[Effect]) -> Collection[str]:
        """Record the effects; returns the keys of those that were recorded."""
        wishes = self.gate.unclaimed(
            Draft(effect, subject=effect.key, id=self.new_id(), data=text)
            for effect in effects
            if (text := self._text(effect))
        )
        if not wishes:
            return ()
        ids = [wish.id for wish in wishes]
        try:
            await self.gate.record(self.loop.claim(wishes))
            self.loop.begin(ids)
        except LogUnavailable:
            self.loop.release(ids)
            # Survival's idempotent effects are held in memory, and begun.
            may_act = self.loop.workers.may_act_unrecorded
            if bold := [one for one in wishes if isinstance(one.payload, Effect) and may_act(one.payload)]:
                self.journal.hold(*self.loop.claim(bold))
                self.loop.begin([one.id for one in bold])
            raise
        finally:
            self.loop.release(ids)
        return [wish.subject for wish in wishes]

    def _text(self, effect: Effect) -> str:
        """The effect as JSON text; empty if no executor can carry it out or it can't be encoded, which is reported.

        Effects from outside the package were checked when they arrived.
        """
        try:
            check_executable(self.executors, effect)
            return encode_checked(effect)
        except PulseError as error:
            self.failed(f"rule:{effect.rule}", f"effect {effect.key!r} left out: {error}")
            return ""
