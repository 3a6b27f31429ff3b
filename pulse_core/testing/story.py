"""A scripted scenario for tests of rules: samples and events come, time advances, ticks are folded, effects are settled."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic_core import from_json, to_json

from pulse_core.composition import FOLD
from pulse_core.engine.plugin import Projection
from pulse_core.model.durations import parse_duration
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import (
    ConditionCleared,
    ConditionRaised,
    Effect,
    EffectAcked,
    EffectCancelled,
    EffectExecuting,
    EffectFailed,
)
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.payload import Payload, encode, parse
from pulse_core.model.tick import LayerOutcome
from pulse_core.model.verdict import Verdict
from pulse_core.model.vitals import Sample, Window
from pulse_core.projections.state import Snapshot
from pulse_core.rules import Rule, compose
from pulse_core.rules.onion import run_synchronously
from pulse_core.settings.settings import Settings

NOON = 1_790_000_000 * US_PER_SECOND
HOUR = 3_600 * US_PER_SECOND


def given(
    *rules: Rule,
    settings: Settings | Mapping[str, Any] | None = None,
    at: int = NOON,
    projections: Mapping[str, Projection] | None = None,
) -> "Story":
    """A story for these rules, the first one outermost; `at`: when it begins, UTC microseconds.

    projections: your own, by the names under which rules find them in `curr.own`.
    """
    decided = settings if isinstance(settings, Settings) else Settings.model_validate(settings or {})
    return Story(rules, decided, Moment(at, "boot-1", HOUR), projections or {})


class Story:
    """What a rule would see on a machine where this happened. Ids are `event-N`; durations are texts as `30s`."""

    def __init__(
        self,
        rules: Sequence[Rule],
        settings: Settings,
        now: Moment,
        projections: Mapping[str, Projection] = MappingProxyType({}),
    ) -> None:
        self.rules, self.settings, self.now = tuple(rules), settings, now
        self.projections = projections
        self.own: dict[str, Any] = {name: one.start for name, one in projections.items()}
        self.events: list[Event] = []
        self.emitted: tuple[Effect, ...] = ()
        self.layers: tuple[LayerOutcome, ...] = ()
        self.verdict = Verdict()
        self._state = FOLD.start
        self._windows: dict[str, Window] = {}
        self._prev: Snapshot | None = None
        self._ticks = self._samples = 0

    # What happens

    def after(self, duration: str) -> "Story":
        """Time goes on."""
        self.now = self.now.plus(parse_duration(duration))
        return self

    def sample(self, key: str, **data: Json) -> "Story":
        """A sense brings a sample."""
        self._samples += 1
        taken = Sample(self._samples, key, self.now, data)
        self._windows[key] = self._windows.get(key, Window()).plus(taken)
        return self

    def event(self, payload: Payload, subject: str = "", *, actor: str = "pulse") -> Event:
        """Something is recorded."""
        seq = len(self.events) + 1
        told = Event(
            seq, f"event-{seq}", *self.now, payload.kind, subject, actor, "host", None, encode(payload)
        )
        self.events.append(told)
        self._state = FOLD(self._state, [told])
        assert not self._state.broken, self._state.broken
        self.own = {name: _next_value(one, self.own[name], told) for name, one in self.projections.items()}
        return told

    def happened(self, kind: str, subject: str = "", **data: Json) -> Event:
        """Something of this kind is recorded; data: what it says. Raises Refused if that is not what the kind says."""
        return self.event(parse(kind, data), subject)

    def raised(self, condition: str, state: str = "", evidence: str = "it is so") -> Event:
        """A condition begins, or gets into another state."""
        return self.event(ConditionRaised(evidence=evidence, state=state), condition)

    def cleared(self, condition: str, evidence: str = "it is well", unwatched: bool = False) -> Event:
        """A condition is over, or nobody looks at it any more (unwatched)."""
        return self.event(ConditionCleared(evidence=evidence, unwatched=unwatched), condition)

    def restart(self) -> "Story":
        """Pulse is restarted: what is known afterwards is what the log and its checkpoints say."""
        again = FOLD(FOLD.start, self.events)
        kept = FOLD.load(FOLD.dump(self._state), self._state.seq)
        assert FOLD.dump(kept) == FOLD.dump(again), "a checkpoint differs from the replayed log"
        self._state, self._windows = again, {}
        return self

    def reboot(self) -> "Story":
        """The machine starts anew: another boot, whose clock begins at nothing."""
        self.now = Moment(self.now.at + US_PER_SECOND, f"{self.now.boot}+", US_PER_SECOND)
        return self.restart()

    # What the rules say

    @property
    def snapshot(self) -> Snapshot:
        """What a rule would see now."""
        own = dict(self.own)
        return Snapshot(self._ticks + 1, self.now, self.settings, dict(self._windows), self._state, own)

    def tick(self) -> Verdict:
        """Fold a snapshot; the effects whose key is not open are recorded, and are `emitted` now.

        As in the daemon, what was settled a moment ago and what people were told lately is not emitted again.
        Raises AssertionError if a rule raised: the daemon would pass over it, and a test must not.
        """
        from pulse_core.engine.effect_filter import (
            too_soon,  # only now: no survival rule before a test wants one
        )

        curr, trace = self.snapshot, list[LayerOutcome]()
        verdict = run_synchronously(compose(self.rules, trace=trace)(self._prev or curr, curr))
        if verdict is None:
            raise AssertionError("a rule waits for something; it may await nothing but inner(prev, curr)")
        self.verdict = verdict
        self.layers, self._prev = tuple(trace), curr
        self._ticks += 1
        self.emitted = tuple(
            effect
            for effect in self.verdict.effects
            if not curr.effects.excludes(effect) and (effect.survival or not too_soon(effect, curr))
        )
        for effect in self.emitted:
            if before := curr.effects.by_key(effect.key):
                self.event(EffectCancelled(why="a newer one takes its place", replaced=True), before.id)
            self.event(effect, effect.key)
        for layer in self.layers:
            if layer.outcome == "error":
                raise AssertionError(f"the rule {layer.rule} raised {layer.notes[0]}")
        return self.verdict

    def ticks(self, *, every: str, times: int) -> list[Effect]:
        """Tick so many times, time going on before each; every effect that was emitted."""
        found: list[Effect] = []
        for _ in range(times):
            self.after(every).tick()
            found += self.emitted
        return found

    # What executors do

    def begun(self, key: str) -> Event:
        """An executor has begun the open effect with this key."""
        return self.event(EffectExecuting(), self._open(key))

    def acked(self, key: str, **result: Json) -> Event:
        """The open effect with this key was carried out, and worked."""
        return self._settled(key, EffectAcked(took_us=1_000, result=result))

    def failed(self, key: str, error: str = "it did not work") -> Event:
        """The open effect with this key was tried, and did not work."""
        return self._settled(key, EffectFailed(error=error))

    def _settled(self, key: str, outcome: Payload) -> Event:
        id_ = self._open(key)
        if self._state.effects.open[id_].attempt == 0:
            self.event(EffectExecuting(), id_)
        return self.event(outcome, id_)

    def _open(self, key: str) -> str:
        if key not in self._state.effects.keys:
            raise AssertionError(f"no effect {key!r} is open; open are {sorted(self._state.effects.keys)}")
        return self._state.effects.keys[key]

    # What is expected

    def expect(self, action: str, *, key: str | None = None, **params: Json) -> Effect:
        """The effect that the last tick emitted: its action, and its key and these params if they are given."""
        for effect in self.emitted:
            fits = effect.action == action and key in (None, effect.key)
            if fits and all(effect.params.get(name) == value for name, value in params.items()):
                return effect
        wanted = " ".join(
            [action, *([key] if key else []), *(f"{name}={value!r}" for name, value in params.items())]
        )
        raise AssertionError(f"expected {wanted}; {self._told()}")

    def expect_nothing(self, action: str | None = None) -> None:
        """The last tick emitted no effect (or none of this action)."""
        if found := [effect for effect in self.emitted if action in (None, effect.action)]:
            raise AssertionError(
                f"expected no {action or 'effect'}, but {found[0].key!r} came; {self._told()}"
            )

    def expect_note(self, words: str) -> str:
        """A note of the last tick that holds these words: why a rule did what it did."""
        notes = [note for layer in self.layers for note in layer.notes]
        found = next((note for note in notes if words in note), None)
        assert found is not None, f"no note says {words!r}; {self._told()}"
        return found

    def _told(self) -> str:
        effects = "; ".join(f"{effect.key} ({effect.reason})" for effect in self.emitted) or "nothing"
        notes = (
            "; ".join(f"{layer.rule}: {note}" for layer in self.layers for note in layer.notes) or "nothing"
        )
        return f"the tick emitted: {effects}. It noted: {notes}"


def _next_value(projection: Projection, value: Any, event: Event) -> Any:
    """The value after one more event, as JSON has it: what can't be written down can't be remembered."""
    is_wanted = projection.kinds is None or event.kind in projection.kinds
    return from_json(to_json(projection.step(value, event))) if is_wanted else value
