"""Monitors the daemon's own usage, decides which work is shed, and records each change."""

from collections.abc import Callable, Mapping

from pulse_core.daemon.load_shedding import (
    MEASURES,
    NO_VITALS,
    REFLEX_ALONE,
    Pace,
    SheddingState,
    next_state,
    pace,
    usage,
)
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import WorkShed
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.vitals import Sample
from pulse_core.ports import Watcher
from pulse_core.record import Journal
from pulse_core.settings import Settings

WATCHER = "system-resource"
PROCESSES = "process-alive"


class SelfMonitor:
    """Holds how much work is shed now; others ask it before they begin optional work.

    newest: the newest sample of the system; failed(whose, message) is called when a step cannot be recorded.
    A new daemon sheds nothing: the usage of an earlier one ended with it.
    """

    def __init__(
        self,
        journal: Journal,
        settings: Callable[[], Settings],
        newest: Callable[[], Sample | None],
        failed: Callable[[str, str], None],
    ) -> None:
        self.journal, self.settings, self.newest, self.failed = journal, settings, newest, failed
        self.shed = SheddingState()
        self._seen: Sample | None = None

    @property
    def skips_vitals(self) -> bool:
        """Whether vitals are written to disk only for ticks that emit effects."""
        return self.shed.level >= NO_VITALS

    @property
    def is_reflex_alone(self) -> bool:
        """Whether only the survival rules are folded."""
        return self.shed.level >= REFLEX_ALONE

    def pace(self, watcher: Watcher) -> Pace:
        """How this watcher is slowed down."""
        looks = self.settings().watch.process_interval / US_PER_SECOND
        usual = looks if watcher.name == PROCESSES else float("inf")
        return pace(self.shed.level, watcher.name, watcher.interval, usual)

    def begin(self) -> None:
        """Ignore the samples so far: they measured another daemon."""
        self._seen = self.newest()

    async def look(self) -> None:
        """Evaluate the newest sample, unless that was done; a step up or down is recorded."""
        before, self._seen = self._seen, self.newest()
        if self._seen is None or self._seen is before:
            return
        used = usage(self._seen, before.moment if before else None)
        if used is not None:
            level, self.shed = self.shed.level, next_state(self.shed, used, self.settings().self_)
            if self.shed.level != level:
                await self._record_change()

    async def _record_change(self) -> None:
        level = self.shed.level
        said = WorkShed(level=level, measures=MEASURES[:level], evidence=self.shed.evidence)
        try:
            await self.journal.append_or_hold(Draft(said))
        except PulseError as error:
            self.failed("self", f"that work is shed could not be recorded: {error}")

    def report(self) -> Mapping[str, Json] | None:
        """What is shed and the evidence for it; None if nothing is."""
        if not self.shed.level:
            return None
        level = self.shed.level
        return {"level": level, "measures": list(MEASURES[:level]), "evidence": self.shed.evidence}
