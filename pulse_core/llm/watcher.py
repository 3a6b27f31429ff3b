"""The watcher of LLM endpoints: each is probed at its own interval, none waits for another."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pulse_core.llm.conclusion import LlmHistory, LlmProbe, check_status, conclude
from pulse_core.llm.endpoint import PREFIX, excuse_for, is_excused_failure, name_of
from pulse_core.llm.settings import ENDPOINTS, LlmSettings
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import ConditionCleared
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.vitals import Reading, Window
from pulse_core.ports import Clock, Prober, ProbeRequest, ProbeResult, Trouble
from pulse_core.projections import CurrentState
from pulse_core.settings import Settings

UNWATCHED_S = 3_600.0
SOON_S = 0.05
SLACK_S = 30.0


@dataclass
class EndpointState:
    """What is known of one URL: its settings, when it was asked last (loop time, and the moment), the pending
    answer if there is one, the newest one, and the history of those before."""

    llm: LlmSettings
    put: float | None = None
    asked: Moment | None = None
    coming: asyncio.Future[ProbeResult] | None = None
    newest: ProbeResult | None = None
    trail: LlmHistory = field(default_factory=LlmHistory)

    def due(self, now: float) -> float:
        """When it is to be asked again (loop time)."""
        return now if self.put is None else self.put + self.llm.interval / US_PER_SECOND


class Llm:
    """The watcher `llm`: one sample for each answer, with the newest of every endpoint, one event for every change.

    A sample has for each URL: ok, latency_ms, trouble and detail, status, failures (questions in a row that
    count), since (the moment of the first of them), proven (they are enough), excused (why they don't count).

    window: this watcher's last minute, with samples that an earlier daemon took: failures in a row go on from there.
    """

    name = key = "llm"

    def __init__(
        self,
        prober: Prober,
        clock: Clock,
        settings: Callable[[], Settings],
        current_state: CurrentState,
        window: Callable[[], Window],
    ) -> None:
        self.prober, self.clock, self.settings, self.current_state, self.window = (
            prober,
            clock,
            settings,
            current_state,
            window,
        )
        self.nudge = asyncio.Event()
        self._endpoints: dict[str, EndpointState] = {}

    @property
    def interval(self) -> float:
        """Seconds until there is something to do."""
        if any(endpoint.coming for endpoint in self._endpoints.values()):
            return SOON_S
        return max(SOON_S, self._left()) if self._endpoints else UNWATCHED_S

    def _left(self) -> float:
        """Seconds until the next endpoint that is not being asked just now is to be."""
        now = asyncio.get_running_loop().time()
        due = (endpoint.due(now) for endpoint in self._endpoints.values() if endpoint.coming is None)
        return max(0.0, min(due, default=now + UNWATCHED_S) - now)

    @property
    def timeout(self) -> float:
        """Seconds that `collect` may take: it returns at the next answer, or when another question is due."""
        longest = max((llm.interval + llm.timeout for llm in ENDPOINTS.of(self.settings())), default=0)
        return longest / US_PER_SECOND + SLACK_S

    def should_wake(self, window: Window) -> bool:
        """Whether something is proven of an endpoint: its condition may stand already, and a restart be due."""
        newest = window.last.data if window.last else {}
        return any(endpoint.get("proven") for endpoint in newest.values())

    async def collect(self) -> Reading:
        """Send due probes, and take the answers that have arrived; raises PulseError if none can be sent."""
        drafts = [*self._unwatched()]
        self._match_settings()
        self._ask()
        if coming := [endpoint.coming for endpoint in self._endpoints.values() if endpoint.coming]:
            await asyncio.wait(coming, timeout=self._left(), return_when=asyncio.FIRST_COMPLETED)
        drafts += self._take_answers()
        data = {url: self._data(endpoint) for url, endpoint in self._endpoints.items() if endpoint.newest}
        return Reading(data, tuple(drafts))

    def _unwatched(self) -> Iterator[Draft]:
        watched = {name_of(llm) for llm in ENDPOINTS.of(self.settings())}
        for name in self.current_state().conditions.raised:
            if name.startswith(PREFIX) and name not in watched:
                yield Draft(ConditionCleared(evidence="it is not watched any more"), subject=name)

    def _match_settings(self) -> None:
        """Match the known endpoints to the settings."""
        known, self._endpoints = self._endpoints, {}
        for llm in ENDPOINTS.of(self.settings()):
            endpoint = known.get(llm.url) or EndpointState(llm, trail=self._earlier_history(llm))
            endpoint.llm = llm
            self._endpoints[llm.url] = endpoint

    def _earlier_history(self, llm: LlmSettings) -> LlmHistory:
        """The history that an earlier daemon left in its last sample."""
        last = self.window().last
        said = last.data.get(llm.url, {}) if last else {}
        if "since" not in said:
            return LlmHistory()
        return LlmHistory(said["failures"], Moment(*said["since"]), tuple(said["states"]))

    def _ask(self) -> None:
        now = asyncio.get_running_loop().time()
        for url, endpoint in self._endpoints.items():
            if endpoint.coming is None and endpoint.due(now) <= now:
                endpoint.put, endpoint.asked = now, self.clock.now()
                endpoint.coming = self.prober.ask(ProbeRequest("http", url, endpoint.llm.timeout))

    def _take_answers(self) -> list[Draft]:
        drafts: list[Draft] = []
        there = [one for one in self._endpoints.values() if one.coming is not None and one.coming.done()]
        for endpoint in there:
            drafts += self._taken(endpoint)
        answers = [endpoint.newest for endpoint in there if endpoint.newest]
        if answers and all(answer.trouble is Trouble.UNASKED for answer in answers):
            raise PulseError(f"nothing could be asked: {answers[0].detail}")
        return drafts

    def _taken(self, endpoint: EndpointState) -> tuple[Draft, ...]:
        """Take the answer that has arrived; returns what follows from it."""
        assert endpoint.coming is not None
        assert endpoint.asked is not None
        endpoint.newest, endpoint.coming = check_status(endpoint.coming.result()), None
        stands = self.current_state().conditions[name_of(endpoint.llm)]
        why = self._excuse(endpoint, endpoint.asked)
        look = LlmProbe(endpoint.llm, endpoint.newest, endpoint.asked, self._trail(endpoint), stands, why)
        drafts, endpoint.trail = conclude(look)
        return drafts

    def _excuse(self, endpoint: EndpointState, asked: Moment) -> str:
        state, now = self.current_state(), self.clock.now()
        if why := excuse_for(endpoint.llm, self.settings(), state, now):
            return why
        return (
            "its process was only just started" if is_excused_failure(asked, endpoint.llm, state, now) else ""
        )

    def _trail(self, endpoint: EndpointState) -> LlmHistory:
        """The part of its history that counts: nothing from before its process was last started."""
        first = endpoint.trail.first
        if first is not None and is_excused_failure(
            first, endpoint.llm, self.current_state(), self.clock.now()
        ):
            return LlmHistory()
        return endpoint.trail

    def _data(self, endpoint: EndpointState) -> Mapping[str, Json]:
        answer, trail = endpoint.newest, self._trail(endpoint)
        assert answer is not None
        why = excuse_for(endpoint.llm, self.settings(), self.current_state(), self.clock.now())
        return {
            "ok": answer.trouble is None,
            "latency_ms": answer.took_ms,
            **({"trouble": answer.trouble.value, "detail": answer.detail} if answer.trouble else {}),
            **({"status": answer.status} if answer.status is not None else {}),
            **_history_json(trail),
            **({"proven": True} if trail.failures >= endpoint.llm.evidence and not why else {}),
            **({"excused": why} if why else {}),
        }


def _history_json(trail: LlmHistory) -> Mapping[str, Json]:
    if trail.first is None:
        return {}
    return {"failures": trail.failures, "since": list(trail.first), "states": list(trail.states)}
