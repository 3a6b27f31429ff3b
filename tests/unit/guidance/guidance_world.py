"""Twins of the log and of a project's files, in memory; between any two steps others may do something."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from pulse_core.composition import ADMITS
from pulse_core.guidance.projection import GUIDANCE, Guidance, GuidedProject, changes_in
from pulse_core.guidance.protocol import FILES, TEMPLATES, Change
from pulse_core.guidance.service import FileObservation, GuidanceService, Lines
from pulse_core.model.event import Draft, Event
from pulse_core.model.payload import Role, encode
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings

ROOT = "/project"
START = 1_800_000_000_000_000
SETTINGS = Settings()


def sha(text: str) -> str:
    """The hash of a file with this text."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class GuidanceWorld:
    """One log and one project, and as many services as a test wants. between: called at each step, and may use others."""

    random: Random = field(default_factory=lambda: Random(0))
    files: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    state_: Guidance = field(default_factory=Guidance)
    published: list[str] = field(default_factory=list)
    earlier_state: bytes | None = None
    earlier_lines: list[bytes] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    now: int = START
    between: Callable[[], None] = lambda: None

    def service(self) -> GuidanceService:
        """One more process."""
        return GuidanceService(self, self, self._tick, lambda: f"{self.random.getrandbits(32):08x}")

    def _tick(self) -> int:
        self.now += self.random.choice((0, 1, 1_000_000, -5_000_000))  # clocks are set back
        return self.now

    @property
    def project_(self) -> GuidedProject:
        """How the project stands."""
        return self.state_.projects[ROOT]

    # the log

    def state(self) -> Guidance:
        self.between()
        return self.state_

    def append(self, *drafts: Draft) -> None:
        self.batches.append(len(drafts))
        for draft in drafts:
            self._append(draft)

    def _append(self, draft: Draft) -> None:
        self.between()
        state = State().with_values({GUIDANCE.name: self.state_}, len(self.events))
        ADMITS[draft.payload.kind](draft, Role.PERSON, state, SETTINGS)
        data, seq = encode(draft.payload), len(self.events) + 1
        id_ = draft.id or f"row-{seq}"
        assert id_ not in {event.id for event in self.events}
        event = Event(seq, id_, self.now, "", 0, draft.payload.kind, draft.subject, "", "", None, data)
        self.events.append(event)
        self.state_ = GUIDANCE.after(self.state_, [event])
        self.between()

    def find(self, root: str, event_id: str) -> Change | None:
        return next((change for change in self.changes(root) if change.id == event_id), None)

    def changes(self, root: str) -> Iterator[Change]:
        return (change for event in self.events for change in changes_in(event))

    # the files

    def prepare(self, root: str) -> None:
        self.files = {**TEMPLATES, **self.files}

    def is_empty(self, root: str) -> bool:
        return not self.files

    def observe(self, root: str, known: Mapping[str, str | None]) -> Mapping[str, FileObservation]:
        self.between()
        seen = {
            name: FileObservation(sha(self.files[name]), len(self.files[name].encode()))
            if name in self.files
            else FileObservation()
            for name in FILES
        }
        self.between()
        return seen

    def texts(self, root: str) -> Mapping[str, str]:
        return {name: self.files.get(name, "") for name in FILES}

    def earlier(self, root: str) -> tuple[bytes | None, Iterator[bytes]]:
        return self.earlier_state, iter(self.earlier_lines)

    def publish(self, root: str, project: Callable[[], GuidedProject], lines: Lines) -> None:
        self.published = list(lines() or ())
