"""Folds the authors' projections; between batches each value is kept as JSON text, so that rules can't change it."""

import hashlib
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any

from pydantic_core import from_json, to_json

from pulse_adapters.rule_host.guarded_rule import Report
from pulse_adapters.rule_host.time_budget import TimeBudget, TimeBudgetExceeded
from pulse_adapters.workers.source_locations import Places, describe_error, with_place
from pulse_core.engine.plugin import Projection
from pulse_core.model.event import Event

MOST_BYTES = 256 * 1024
"""Of a value as JSON."""


class UserProjection:
    """The state of one projection. It is stopped for good when it takes too long or returns a value that is no JSON."""

    def __init__(
        self, name: str, projection: Projection, unit: int, budget: TimeBudget, places: Places
    ) -> None:
        self.name, self.projection = name, projection
        self.version = version(projection)
        self.seq, self.text = 0, to_json(projection.start)
        self.value = from_json(self.text)
        self.broken = False
        self._unit, self._budget, self._places = unit, budget, places

    def resume(self, seq: int, text: str) -> None:
        """Resume from a kept value."""
        self.seq, self.text = seq, text.encode()
        self.value = from_json(self.text)

    def take(self, events: Sequence[Event], upto: int, report: Report) -> None:
        """The value after these events; `upto`: the row that is reached with them at least."""
        kinds, seq = self.projection.kinds, self.seq
        self.seq = max(upto, events[-1].seq if events else 0, seq)
        wanted = [event for event in events if event.seq > seq and (kinds is None or event.kind in kinds)]
        if not wanted or self.broken:
            return
        outer = self._budget.enter(self._unit)
        try:
            text = to_json(self._stepped(wanted, report))
            if len(text) > MOST_BYTES:
                raise ValueError(f"its value takes {len(text):,} bytes; at most {MOST_BYTES:,} are kept")
            self.text, self.value = text, from_json(text)
        except BaseException as error:  # noqa: BLE001 - somebody else's code, which may raise what it likes
            self.broken = True
            words = "took too long" if isinstance(error, TimeBudgetExceeded) else describe_error(error)
            self._budget.hold()
            self._tell(report, error, f"{words}; it stands still from here on")
        finally:
            self._budget.back(outer)

    def _stepped(self, events: Iterable[Event], report: Report) -> Any:
        """The value after each event; an event at which the step fails is skipped, at every replay alike."""
        step, value, failed = self.projection.step, from_json(self.text), False
        for event in events:
            try:
                value = step(value, event)
            except Exception as error:  # noqa: BLE001 - as above
                if not failed:
                    self._tell(report, error, f"{describe_error(error)}, at event {event.id} ({event.kind})")
                failed = True
        return value

    def _tell(self, report: Report, error: BaseException, words: str) -> None:
        place = self._places.of_error(error) or self._places.of_code(self.projection.step)
        report(f"projection:{self.name}", with_place(words, place))


def version(projection: Projection) -> str:
    """A version that changes whenever the same events may give another value: author's number and hash of the code."""
    digest = hashlib.sha256(to_json(projection.start))
    digest.update(repr(sorted(projection.kinds) if projection.kinds is not None else None).encode())
    if code := getattr(projection.step, "__code__", None):
        digest.update(repr(_meaning(code)).encode())
    return f"{projection.version}-{digest.hexdigest()[:12]}"


def _meaning(code: CodeType) -> tuple[Any, ...]:
    """The meaning of code without line numbers: an added comment changes nothing."""
    constants = []
    for one in code.co_consts:
        inner = _meaning(one) if isinstance(one, CodeType) else one
        constants.append(sorted(map(repr, inner)) if isinstance(inner, frozenset) else inner)
    return code.co_code, code.co_names, code.co_varnames, tuple(constants)
