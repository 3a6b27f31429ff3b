"""Events for tests, with as little to say as possible."""

from hypothesis import strategies as st

from pulse_core.composition import KINDS
from pulse_core.model.event import Event
from pulse_core.model.kinds import (
    ConditionCleared,
    ConditionRaised,
    DaemonStopped,
    Effect,
    EffectAcked,
    EffectAttemptFailed,
    EffectCancelled,
    EffectCancelRequested,
    EffectExecuting,
    EffectFailed,
    EffectUnknown,
    EngineChangeStarted,
    EnginePromoted,
    EngineRolledBack,
    ErrorReported,
    LogMatched,
    Paused,
    ProcessDied,
    ProcessRestartRequested,
    ProcessStartRequested,
    ProcessStopped,
    ProcessStopRequested,
    ProcessUp,
    PromoteRefused,
    PromoteRequested,
    Resumed,
    RollbackRequested,
    RuleQuarantined,
    SettingsLoaded,
)
from pulse_core.model.names import SETTLING
from pulse_core.model.payload import Payload, encode, parse

SECOND = 1_000_000


def event(seq: int, payload: Payload, subject: str = "", id_: str = "", at: int | None = None) -> Event:
    """An event recorded `at` microseconds after boot (default: one second a row)."""
    mono = seq * SECOND if at is None else at
    return Event(
        seq, id_ or f"id-{seq}", 10**15 + mono, "boot", mono, payload.kind, subject, "pulse", "host", None,
        encode(payload),
    )  # fmt: skip


SUBJECTS = ("id-1", "id-2", "id-3", "gateway", "worker", "rule:x")
OUTCOMES: tuple[Payload, ...] = (
    EffectExecuting(),
    EffectAttemptFailed(attempt=1, error="no", retry_us=5),
    EffectAcked(took_us=1, result={"pid": 7, "started": 70}),
    EffectFailed(error="no"),
    EffectUnknown(why="dark"),
    EffectCancelled(why="late"),
    EffectCancelRequested(),
)
WISHES: tuple[Effect, ...] = (
    Effect(action="note", key="note:1"),
    Effect(action="restart-process", key="restart-process:gateway", params={"process": "gateway"}, tick=4),
    Effect(action="stop-process", key="stop-process:gateway", params={"process": "gateway"}, tick=5),
    Effect(action="notify", key="notify:flapping:gateway", params={}, tick=6),
    Effect(action="notify", key="notify:stop:gateway", params={}, tick=6),
    Effect(action="notify", key="notify:flapping:gateway", params={"over": True}, tick=6),
    Effect(action="clean-paths", key="clean", params={"for_condition": "gateway"}, survival=True, tick=7),
    Effect(action="rollback-engine", key="rollback", survival=True, tick=8),
)
OF_CAPABILITIES = {"silence-added": {"expires_us": 3 * SECOND, "why": "work"}, "silence-removed": {}}
"""What happens where these capabilities are; nothing here needs them."""

NEWS: tuple[Payload, ...] = (
    ProcessUp(pid=5, started=50, evidence="there"),
    ProcessDied(pid=5, evidence="gone", healthy=True),
    ProcessDied(pid=5, evidence="gone", healthy=False),
    ProcessStopped(evidence="inactive", expires_us=SECOND),
    ProcessStopRequested(expires_us=SECOND),
    ProcessStartRequested(),
    ProcessRestartRequested(),
    Paused(),
    Resumed(),
    SettingsLoaded(digest="d", processes=("gateway",)),
    ConditionRaised(evidence="full", state="high", value=0.9, bound=0.8),
    ConditionRaised(evidence="fuller"),
    ConditionCleared(evidence="room"),
    LogMatched(severity="error", lines=("ERROR",), count=2, place={"offset": 3}),
    EnginePromoted(previous="a", watch_us=SECOND),
    PromoteRequested(previous="a"),
    RollbackRequested(),
    PromoteRefused(why="no"),
    EngineChangeStarted(),
    DaemonStopped(pid=1, reason="asked"),
    RuleQuarantined(commit="a", why="slow"),
    EngineRolledBack(rejected="b"),
    ErrorReported(message="no", repeats=1),
    *(parse(kind, data) for kind, data in OF_CAPABILITIES.items() if kind in KINDS),
)

_said: st.SearchStrategy[tuple[Payload, str | None]] = st.one_of(
    st.tuples(st.sampled_from(WISHES), st.none()),
    st.tuples(st.sampled_from(OUTCOMES), st.sampled_from(SUBJECTS)),
    st.tuples(st.sampled_from(NEWS), st.sampled_from(SUBJECTS)),
)


def _rows(said: list[tuple[Payload, str | None]]) -> list[Event]:
    return [
        event(seq, payload, payload.key if isinstance(payload, Effect) else subject or "")
        for seq, (payload, subject) in enumerate(said, 1)
    ]


histories = st.lists(_said, max_size=60).map(_rows)
"""Logs of built-in kinds in any order, sensible or not, about few subjects so that they meet."""

__all__ = ["OUTCOMES", "SECOND", "SETTLING", "WISHES", "event", "histories"]
