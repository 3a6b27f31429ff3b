"""Whether live processes serve: each is asked at its own pace, in the background, and its last answers are weighed.

Nobody waits for an answer: a death is seen at once, whatever else is being asked.
"""

from asyncio import Future
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pulse_core.model.json_types import Json
from pulse_core.model.moment import TICK_US, Moment
from pulse_core.ports.health import HealthAnswer, HealthProber
from pulse_core.ports.host import ProcessId, ProcessObservation
from pulse_core.projections.processes import ProcessHistory
from pulse_core.settings.probes import ProbeKind, evidence_words
from pulse_core.settings.processes import ProcessSettings

DOUBT_US = 500_000
STARTING_US: Mapping[ProbeKind, int] = {"tcp": 100_000, "unix": 100_000, "http": 500_000, "exec": 500_000}
"""The longest time between two probes of what has not come up yet, by what a probe costs."""
SLACK = 20
"""A probe is made with another one that is due by this part of its pause earlier."""
GOOD, FAILED = "+", "-"


class ProbeRecord(NamedTuple):
    """What the probes of one life of a process said.

    outcomes: of those that count, oldest first; newest: the last answer; error: the last one that was not good, in
    words; in_a_row: the last answers that were bad, those that count for nothing included; failing: when the first of these
    was asked for, UTC microseconds.
    """

    life: ProcessId | None = None
    outcomes: str = ""
    newest: HealthAnswer | None = None
    error: str = ""
    in_a_row: int = 0
    failing: int = 0

    def after(
        self, answer: HealthAnswer, process: ProcessSettings, counts: bool, asked: int
    ) -> "ProbeRecord":
        """The record after one more answer, asked for then; one that failed before it `counts` is only told."""
        outcome = (GOOD if answer.ok else FAILED) if counts and answer.ok is not None else ""
        error = self.error if answer.ok else answer.detail
        in_a_row = self.in_a_row if answer.ok is None else 0 if answer.ok else self.in_a_row + 1
        return self._replace(
            outcomes=(self.outcomes + outcome)[-process.probes :],
            newest=answer,
            error=error,
            in_a_row=in_a_row,
            failing=(self.failing or asked) if in_a_row else 0,
        )

    def failed(self, process: ProcessSettings) -> int:
        """How many of the probes that count failed."""
        return self.outcomes[-process.probes :].count(FAILED)

    def verdict(self, process: ProcessSettings) -> str:
        """In words why it counts as dead; empty as long as it does not."""
        failed = self.failed(process)
        if failed < process.evidence:
            return ""
        return f"{self.error or 'no good answer'}; {evidence_words(failed, process.probes)}"

    def as_json(self, process: ProcessSettings) -> Mapping[str, Json]:
        """What a sample says of it, from which the next daemon goes on; nothing as long as all is well."""
        failed, is_well = self.failed(process), self.newest is not None and self.newest.ok
        return {
            **({"outcomes": self.outcomes, "failed": failed, "of": process.probes} if failed else {}),
            **({"error": self.error} if self.error and (failed or not is_well) else {}),
            **({"in_a_row": self.in_a_row, "failing": self.failing} if self.in_a_row else {}),
        }


def recorded(said: Mapping[str, Json], life: ProcessId | None) -> ProbeRecord:
    """The record that an earlier daemon left in a sample; an empty one if that was about another life."""
    probe = said.get("probe", {})
    if not probe or said.get("pid") != (life.pid if life else None):
        return ProbeRecord(life)
    return ProbeRecord(
        life,
        probe.get("outcomes", ""),
        None,
        probe.get("error", ""),
        probe.get("in_a_row", 0),
        probe.get("failing", 0),
    )


def age_us(life: ProcessId | None, history: ProcessHistory, now: Moment) -> int:
    """For how long it has been alive, as far as that is known."""
    if life is not None:
        return max(0, now.mono - life.started * TICK_US)
    return now.since(history.up) if history.up else 0


def _is_unaskable(
    record: ProbeRecord, process: ProcessSettings, history: ProcessHistory, now: Moment
) -> bool:
    """Whether a live process that is not up yet can't be asked: it counts as up then, as one without a probe does.

    From the middle of its grace on: before, the next probe may be possible; after it, its start would have failed.
    """
    if record.newest is None or record.newest.ok is not None or record.in_a_row:
        return False
    return history.starting is None or now.since(history.starting) >= process.start_grace // 2


def is_port_told(process: ProcessSettings, history: ProcessHistory) -> bool:
    """Whether it is asked while it is dead: only who holds its port, once a start has failed or none is made."""
    is_failing = bool(history.attempts) or process.restart.max == 0
    return process.probe == "http" and bool(process.start and history.down) and is_failing


@dataclass
class ProbedProcess:
    """A process that is asked: its record, when it was asked last and about which life, and the pending answer."""

    record: ProbeRecord
    asked: Moment | None = None
    life: ProcessId | None = None
    pending: "Future[HealthAnswer] | None" = None
    left_us: int = 0


@dataclass(eq=False)
class ProcessHealth:
    """Asks processes whether they serve, at most one probe of each at a time.

    usual: the time between two probes where the settings say nothing; nudge: is called when an answer may matter.
    """

    prober: HealthProber
    usual: Callable[[], int]
    nudge: Callable[[], None]
    _of: dict[str, ProbedProcess] = field(default_factory=dict, init=False)

    @property
    def wait_us(self) -> int | None:
        """Microseconds from the last look until somebody is to be asked; None if nobody is."""
        return min((one.left_us for one in self._of.values() if one.pending is None), default=None)

    def forget_others(self, names: frozenset[str]) -> None:
        """Forget all processes but these."""
        for name in self._of.keys() - names:
            del self._of[name]

    def observe(
        self,
        process: ProcessSettings,
        sight: ProcessObservation,
        life: ProcessId | None,
        history: ProcessHistory,
        now: Moment,
        earlier: Mapping[str, Json],
    ) -> ProcessObservation:
        """What was seen of a process with what its probes said; asks it again if that is due.

        life: the live process that it is; earlier: what the newest sample said of it, from an earlier daemon.
        """
        if process.probe is None:
            return sight
        one = self._of.get(process.name)
        if one is None:
            one = self._of[process.name] = ProbedProcess(recorded(earlier, life))
        self._take(one, process, life, history, now)
        if one.record.life != life:
            one.record, one.asked = ProbeRecord(life), None
        elif history.up is None:
            one.record = one.record._replace(outcomes="")
        pause = self._pause(process, one.record, history)
        one.left_us = pause - now.since(one.asked) if one.asked else 0
        is_there = bool(sight.found or sight.answering)
        if sight.busy or not (is_there or is_port_told(process, history)):
            one.left_us = pause
            return sight
        if one.pending is None and one.left_us <= pause // SLACK:
            self._ask(one, process, life, now, urgent=pause < self.usual() or history.up is None)
        if not is_there:
            return sight
        newest, is_unproven = one.record.newest, history.down is not None or history.starting is not None
        serves = not one.record.verdict(process)
        if history.up is None and is_unproven:
            serves = newest is not None and (
                newest.ok is True or _is_unaskable(one.record, process, history, now)
            )
        says = newest is not None and newest.ok is not None
        return sight._replace(answering=serves, detail=newest.detail if newest and says else sight.detail)

    def record(self, name: str) -> ProbeRecord:
        """The record of a process."""
        return one.record if (one := self._of.get(name)) else ProbeRecord()

    def _pause(self, process: ProcessSettings, record: ProbeRecord, history: ProcessHistory) -> int:
        assert process.probe is not None
        pause = process.every or self.usual()
        if history.up is None and history.starting is not None:
            return min(pause, STARTING_US[process.probe])
        doubtful = not process.every and record.outcomes.endswith(FAILED)
        return min(pause, DOUBT_US) if doubtful else pause

    def _ask(
        self, one: ProbedProcess, process: ProcessSettings, life: ProcessId | None, now: Moment, urgent: bool
    ) -> None:
        def answered(answer: "Future[HealthAnswer]") -> None:
            if urgent or answer.cancelled() or not answer.result().ok:
                self.nudge()

        one.asked, one.life = now, life
        one.pending = self.prober.ask(process, life)
        one.pending.add_done_callback(answered)

    def _take(
        self,
        one: ProbedProcess,
        process: ProcessSettings,
        life: ProcessId | None,
        history: ProcessHistory,
        now: Moment,
    ) -> None:
        """Take the answer that has arrived, unless it is about an earlier life."""
        if one.pending is None or not one.pending.done():
            return
        answer, one.pending = one.pending, None
        if answer.cancelled() or one.life != life or one.record.life != life or one.asked is None:
            return
        in_time = age_us(life, history, now) - now.since(one.asked) >= process.start_period
        counts = history.up is not None and (in_time or bool(answer.result().ok))
        one.record = one.record.after(answer.result(), process, counts, one.asked.at)
