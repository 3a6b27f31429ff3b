"""The watcher of LLM endpoints: each is probed at its own interval, none waits for another."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pulse_core.llm.endpoint import (
    PREFIX,
    LlmHistory,
    LlmProbe,
    check_status,
    conclude,
    excuse_for,
    is_excused_failure,
    name_of,
)
from pulse_core.llm.gateway import LARGEST_BODY, read_answer
from pulse_core.llm.settings import LlmSettings, endpoints_of, live_url
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import ConditionCleared
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.vitals import Reading, Window
from pulse_core.ports.clock import Clock
from pulse_core.ports.prober import Prober, ProbeRequest, ProbeResult, Trouble
from pulse_core.projections.state import CurrentState
from pulse_core.settings.settings import Settings

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


@dataclass(eq=False)
class Llm:
    """The watcher `llm`: one sample for each answer, with the newest of every endpoint, one event for every change.

    A sample has for each URL: ok, latency_ms, trouble and detail, status, failures (questions in a row that count),
    since (the moment of the first of them), proven (they are enough), excused (why they don't count). window: this
    watcher's last minute, also of an earlier daemon: failures in a row go on from there.
    """

    name = key = "llm"
    conditions = (PREFIX,)

    prober: Prober
    clock: Clock
    settings: Callable[[], Settings]
    current_state: CurrentState
    window: Callable[[], Window]
    nudge: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _endpoints: dict[str, EndpointState] = field(default_factory=dict, init=False)

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
        longest = max((llm.interval + llm.timeout for llm in endpoints_of(self.settings())), default=0)
        return longest / US_PER_SECOND + SLACK_S

    def should_wake(self, window: Window) -> bool:
        """Whether something is proven of an endpoint: its condition may stand already, and a restart be due."""
        newest = window.last.data if window.last else {}
        return any(endpoint.get("proven") for endpoint in newest.values())

    async def collect(self) -> Reading:
        """Send due probes, and take the answers that have arrived; raises PulseError if none can be sent."""
        drafts = self._match_settings()
        self._ask()
        if coming := [endpoint.coming for endpoint in self._endpoints.values() if endpoint.coming]:
            await asyncio.wait(coming, timeout=self._left(), return_when=asyncio.FIRST_COMPLETED)
        there = [one for one in self._endpoints.values() if one.coming is not None and one.coming.done()]
        for endpoint in there:
            drafts += self._taken(endpoint)
        answers = [endpoint.newest for endpoint in there if endpoint.newest]
        if answers and all(answer.trouble is Trouble.UNASKED for answer in answers):
            raise PulseError(f"nothing could be asked: {answers[0].detail}")
        data = {url: self._data(endpoint) for url, endpoint in self._endpoints.items() if endpoint.newest}
        return Reading(data, tuple(drafts))

    def _match_settings(self) -> list[Draft]:
        """Match the known endpoints to the settings, a new one with the history that an earlier daemon left in its last
        sample; returns the ends of conditions of those that are not watched any more."""
        known, self._endpoints = self._endpoints, {}
        last = self.window().last
        for llm in endpoints_of(self.settings()):
            said, trail = last.data.get(llm.url, {}) if last else {}, LlmHistory()
            if "since" in said:
                seen = Moment(*said["seen"]) if "seen" in said else None
                trail = LlmHistory(said["failures"], Moment(*said["since"]), tuple(said["states"]), seen=seen)
            endpoint = self._endpoints[llm.url] = known.get(llm.url) or EndpointState(llm, trail=trail)
            endpoint.llm = llm
        raised, watched = self.current_state().conditions.raised, {PREFIX + url for url in self._endpoints}
        gone = [name for name in raised if name.startswith(PREFIX) and name not in watched]
        cleared = ConditionCleared(evidence="it is not watched any more", unwatched=True)
        return [Draft(cleared, subject=name) for name in gone]

    def _ask(self) -> None:
        now = asyncio.get_running_loop().time()
        for url, endpoint in self._endpoints.items():
            if endpoint.coming is None and endpoint.due(now) <= now:
                endpoint.put, endpoint.asked = now, self.clock.now()
                question, llm = ProbeRequest("http", url, endpoint.llm.timeout), endpoint.llm
                if llm.kind != "page":
                    question = question._replace(
                        largest=LARGEST_BODY, keeps=True, bearer=llm.key.removeprefix("env:")
                    )
                endpoint.coming = self.prober.ask(question)

    def _taken(self, endpoint: EndpointState) -> tuple[Draft, ...]:
        """Take the answer that has arrived; returns what follows from it."""
        assert endpoint.coming is not None
        assert endpoint.asked is not None
        state, now, llm = self.current_state(), self.clock.now(), endpoint.llm
        endpoint.newest, endpoint.coming = check_status(read_answer(llm, endpoint.coming.result())), None
        why = excuse_for(llm, self.settings(), state, now)
        live = self._endpoints.get(live_url(llm), endpoint)
        if live is not endpoint and live.newest and live.newest.trouble:
            why = f"{live.llm.url} gives no good answer"
        if not why and is_excused_failure(endpoint.asked, llm, state, now):
            why = "its process was only just started"
        stands, trail = state.conditions[name_of(llm)], self._trail(endpoint)
        look = LlmProbe(llm, endpoint.newest, endpoint.asked, trail, stands, why)
        drafts, endpoint.trail = conclude(look)
        return drafts

    def _trail(self, endpoint: EndpointState) -> LlmHistory:
        """The part of its history that counts: nothing from before its process was last started."""
        first, llm = endpoint.trail.first, endpoint.llm
        is_old = first and is_excused_failure(first, llm, self.current_state(), self.clock.now())
        return LlmHistory() if is_old else endpoint.trail

    def _data(self, endpoint: EndpointState) -> Mapping[str, Json]:
        answer, trail = endpoint.newest, self._trail(endpoint)
        assert answer is not None
        why = excuse_for(endpoint.llm, self.settings(), self.current_state(), self.clock.now())
        counted: dict[str, Json] = {}
        if trail.first is not None:
            first, states = list(trail.first), list(trail.states)
            counted = {"failures": trail.failures, "since": first, "states": states}
            if trail.seen is not None:
                counted["seen"] = list(trail.seen)
        return {
            "ok": answer.trouble is None,
            "latency_ms": answer.took_ms,
            **({"trouble": answer.trouble.value, "detail": answer.detail} if answer.trouble else {}),
            **({"status": answer.status} if answer.status is not None else {}),
            **counted,
            **({"proven": True} if trail.failures >= endpoint.llm.evidence and not why else {}),
            **({"excused": why} if why else {}),
        }
