"""The watcher of the network: probes names and pages periodically."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import ConditionCleared
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import NETWORK, WELL
from pulse_core.model.vitals import Reading, Window
from pulse_core.ports.prober import Prober, ProbeRequest, Trouble
from pulse_core.projections.state import CurrentState
from pulse_core.settings.network import NetworkSettings
from pulse_core.settings.settings import Settings
from pulse_core.watch.evaluate_network import (
    TargetAnswer,
    check_answer,
    conclude,
    is_local,
    state_of,
)

UNWATCHED_S = 3_600.0
ANSWERING_S = 15.0
"""Seconds beyond the targets' timeout that a round may take."""


@dataclass(eq=False)
class Network:
    """The watcher `network`: one sample a round with every target, one event for every change.

    A sample has the round's `state` (empty: well), for how many rounds it was so (`streak`), the moment of the first
    of several bad rounds in a row (`failing`), and `targets`, by name or URL: ok, latency_ms, trouble and detail,
    streak (rounds in a row in trouble). window: this watcher's last minute, also of an earlier daemon: streaks go on
    from there.
    """

    name = key = NETWORK
    conditions = (NETWORK,)

    prober: Prober
    settings: Callable[[], Settings]
    current_state: CurrentState
    window: Callable[[], Window]
    nudge: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _asked: Sequence[ProbeRequest] | None = field(default=None, init=False)
    _rounds: tuple[str, ...] = field(default=(), init=False)
    _streaks: dict[str, int] = field(default_factory=dict, init=False)
    _public: set[str] = field(default_factory=set, init=False)

    @property
    def interval(self) -> float:
        """Seconds until the next round."""
        network = self.settings().network
        return network.interval / US_PER_SECOND if probe_requests(network) else UNWATCHED_S

    @property
    def timeout(self) -> float:
        """Seconds that a round may take."""
        return self.settings().network.timeout / US_PER_SECOND + ANSWERING_S

    def should_wake(self, window: Window) -> bool:
        """Never: its conclusions are events, and those wake."""
        return False

    async def collect(self) -> Reading:
        """Probe every target once, concurrently; raises PulseError if none could be probed."""
        network = self.settings().network
        asked = probe_requests(network)
        self._go_on_with(asked)
        if not asked:
            is_raised = self.current_state().conditions[NETWORK] is not None
            cleared = ConditionCleared(evidence="the network is not watched any more", unwatched=True)
            return Reading({}, (Draft(cleared, subject=NETWORK),) if is_raised else ())
        answers = await asyncio.gather(*(self.prober.ask(question) for question in asked))
        if all(answer.trouble is Trouble.UNASKED for answer in answers):
            raise PulseError(f"nothing could be asked: {answers[0].detail}")
        seen = [
            TargetAnswer(question, check_answer(question, answer, question.target in self._public))
            for question, answer in zip(asked, answers, strict=True)
        ]
        self._remember(seen)
        drafts: tuple[Draft, ...] = ()
        if (state := state_of(seen, network.slow)) is not None:
            self._rounds = (*self._rounds[-max(network.evidence, 60) :], state)
            stands = self.current_state().conditions[NETWORK]
            drafts = conclude(seen, self._rounds, stands, network, self._failing())
        return Reading(self._data(seen), drafts)

    def _failing(self) -> Moment | None:
        """When the first of several bad rounds in a row was, of which this is the last."""
        last = self.window().last
        if last is None or len(self._rounds) < 2 or not all(self._rounds[-2:]):
            return None
        return Moment(*last.data["failing"]) if "failing" in last.data else last.moment

    def _go_on_with(self, asked: Sequence[ProbeRequest]) -> None:
        """Forget rounds with other targets; continue those of an earlier daemon with the same ones."""
        last = self.window().last
        before = last.data.get("targets", {}) if last and self._asked is None else {}
        if asked != self._asked:
            self._rounds, self._streaks = (), {}
        if last and before and before.keys() == {question.target for question in asked}:
            self._rounds = (last.data["state"],) * last.data["streak"]
            self._streaks = {target: one.get("streak", 0) for target, one in before.items()}
        self._asked = asked

    def _remember(self, seen: Sequence[TargetAnswer]) -> None:
        for question, answer in seen:
            if answer.trouble is not Trouble.UNASKED:
                before = self._streaks.get(question.target, 0)
                self._streaks[question.target] = before + 1 if answer.trouble else 0
            if answer.addresses and not answer.trouble and not any(map(is_local, answer.addresses)):
                self._public.add(question.target)

    def _data(self, seen: Sequence[TargetAnswer]) -> Mapping[str, Json]:
        state = self._rounds[-1] if self._rounds else WELL
        streak = next((n for n, one in enumerate(reversed(self._rounds)) if one != state), len(self._rounds))
        targets: dict[str, Json] = {}
        for question, answer in seen:
            failures = self._streaks.get(question.target, 0)
            targets[question.target] = {
                "about": question.about,
                "ok": answer.trouble is None,
                "latency_ms": answer.took_ms,
                **({"trouble": answer.trouble.value, "detail": answer.detail} if answer.trouble else {}),
                **({"streak": failures} if failures else {}),
                **({"status": answer.status} if answer.status is not None else {}),
                **({"addresses": list(answer.addresses)} if answer.addresses else {}),
            }
        failing: dict[str, Json] = {"failing": list(first)} if (first := self._failing()) else {}
        return {"state": state, "streak": streak, **failing, "targets": targets}


def probe_requests(network: NetworkSettings) -> Sequence[ProbeRequest]:
    """The probes of one round."""
    return (
        *(ProbeRequest("dns", name, network.timeout, network.resolvers) for name in network.dns),
        *(ProbeRequest("http", url, network.timeout) for url in network.http),
    )
