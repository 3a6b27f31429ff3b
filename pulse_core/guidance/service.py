"""Guidance for agents: each question first looks at the files, and records what has changed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple, Protocol, TypeVar

from pulse_core.guidance import answers
from pulse_core.guidance.answers import Answer
from pulse_core.guidance.events import GuidanceAcknowledged, GuidanceChanged
from pulse_core.guidance.file_formats import imports, read_earlier
from pulse_core.guidance.projection import Guidance, GuidedProject, Superseded
from pulse_core.guidance.protocol import FILES, PLAN, Change, ChangeKind, make_event_id, row_id
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Draft

T = TypeVar("T")
MOST_TRIES = 100
"""Looks of one question, each of which another process has made of no use."""
Lines = Callable[[], Iterator[str] | None]
"""The lines of `events.jsonl`, from the first one on, as often as they are asked for; None where they are not known."""


class FileObservation(NamedTuple):
    """The bytes of a file as they were read at once: their hash and number. None and 0: there is no such file."""

    sha256: str | None = None
    size: int = 0


def next_change(
    root: str, project: GuidedProject, seen: Mapping[str, FileObservation], now: int, digits: str
) -> tuple[Draft, GuidedProject] | None:
    """The event of the first difference between what is recorded and what was seen, and the project after it.

    What was seen is compared with nothing newer: the next difference is one to that project, and whoever was quicker is
    noticed by the number. now: UTC microseconds; digits: eight random ones, hexadecimal. The times in ids of a project only
    grow.
    """
    for name in FILES:
        before, found = project.hashes.get(name), seen[name]
        if found.sha256 == before:
            continue
        kind = ChangeKind.of(before, found.sha256)
        at = max(now, project.latest_at + 1)
        size = None if found.sha256 is None else found.size
        change = Change(project.count + 1, make_event_id(at, digits), at, kind, name, found.sha256, size)
        payload = GuidanceChanged(
            number=change.number, event_id=change.id, change=kind, file=name, sha256=found.sha256, size=size
        )
        return Draft(payload, root, id=row_id(root, change.id)), project.after_changes(change)
    return None


def until_first(look: Callable[[], T]) -> T:
    """What a look returns that nobody has made of no use by recording something else before."""
    for _ in range(MOST_TRIES):
        with suppress(Superseded):
            return look()
    raise PulseError("others change the guidance faster than this can be recorded; ask again")


class GuidanceLog(Protocol):
    """What the log holds of guidance."""

    def state(self) -> Guidance:
        """How it stands now."""

    def append(self, *drafts: Draft) -> None:
        """Record them in this order; raises Superseded at the first of which somebody else was quicker, and PulseError if
        it can't be."""

    def find(self, root: str, event_id: str) -> Change | None:
        """The change of this id."""

    def changes(self, root: str) -> Iterator[Change] | None:
        """All changes of a project, the first one first; None where only the newest are known."""


class ProjectFiles(Protocol):
    """What lies in `.pulse`. A file that is a link out of the project counts as none; so does what can't be read."""

    def prepare(self, root: str) -> None:
        """Make the folder, and of the four files those that are missing; raises PulseError if that can't be."""

    def is_empty(self, root: str) -> bool:
        """Whether there is none of the four files."""

    def observe(self, root: str, known: Mapping[str, str | None]) -> Mapping[str, FileObservation]:
        """What the four files hold. known: hashes; what differs from them is read again until nobody writes it any more."""

    def texts(self, root: str) -> Mapping[str, str]:
        """The texts of the four files; what is long is cut, with a word about it."""

    def earlier(self, root: str) -> tuple[bytes | None, Iterator[bytes]]:
        """`state.json` and the lines of `events.jsonl` as they are; None and none if they are missing."""

    def publish(self, root: str, project: Callable[[], GuidedProject], lines: Lines) -> None:
        """Write `state.json` and `events.jsonl` where they are not what they should be; the folder is never made.

        project: returns the newest state, asked once nobody else writes. Without lines only that is written for which the
        state is enough.
        """


class GuidanceService:
    """Answers for all projects, one question at a time.

    now: UTC microseconds; digits: eight random ones, hexadecimal.
    """

    def __init__(
        self, log: GuidanceLog, files: ProjectFiles, now: Callable[[], int], digits: Callable[[], str]
    ) -> None:
        self._log, self._files, self._now, self._digits = log, files, now, digits

    def begin(self, root: str) -> int:
        """Make a project's files where they are missing, and know it from now on; how many lines of an earlier record could
        not be read. What the files hold at first is no change, what has changed since the last time is."""
        unread, known = 0, self._log.state().projects.get(root)
        if known is None or not known.initialized_at:
            self._files.prepare(root)
            unread = self._import(root)
        self.look(root)
        if self._files.is_empty(root):
            self._files.prepare(root)
            self.look(root)
        return unread

    def look(self, root: str) -> GuidedProject:
        """Record what has changed in a project's files, and write what other tools read."""

        def record() -> None:
            project = self.project(root)
            seen = self._files.observe(root, project.hashes)
            while change := next_change(root, project, seen, self._now(), self._digits()):
                draft, project = change
                self._log.append(draft)

        until_first(record)
        self._publish(root)
        return self.project(root)

    def should_interrupt(self, root: str, last_seen: str | None) -> Answer:
        """The answer of `pulse_should_interrupt`."""
        project = self.look(root)
        found = self._find(root, project, last_seen) if last_seen else None
        return answers.interrupt(project, found.number if found else 0)

    def acknowledge(self, root: str, event_id: str) -> Answer:
        """The answer of `pulse_ack_replan`; what counts is recorded before it is given."""

        def acknowledged() -> Answer:
            project = self.look(root)
            if no := answers.refused(project, event_id, self._find(root, project, event_id)):
                return no
            plan = project.hashes.get(PLAN)
            self._log.append(Draft(GuidanceAcknowledged(event_id=event_id, plan_sha256=plan), root))
            return answers.accepted(event_id, plan)

        answer = until_first(acknowledged)
        self._publish(root)
        return answer

    def context(self, root: str) -> str:
        return answers.context(self.look(root), self._files.texts(root))

    def project(self, root: str) -> GuidedProject:
        """How a project stands; raises Refused if it is not known."""
        return self._log.state().known(root)

    def _find(self, root: str, project: GuidedProject, event_id: str) -> Change | None:
        recent = next((change for change in project.recent if change.id == event_id), None)
        return recent or self._log.find(root, event_id)

    def _import(self, root: str) -> int:
        """Record what is there; another process may do so at the same time, and a part of it may be recorded already."""
        seen = self._files.observe(root, {})
        state, lines = self._files.earlier(root)
        record = read_earlier(state, lines, {name: one.sha256 for name, one in seen.items()})

        def append() -> None:
            known = self._log.state().projects.get(root, GuidedProject())
            if not known.initialized_at:
                payloads = (*imports(record.changes, known.count), record.initialized)
                self._log.append(*(Draft(payload, root) for payload in payloads))

        until_first(append)
        return record.unread

    def _publish(self, root: str) -> None:
        def lines() -> Iterator[str] | None:
            changes = self._log.changes(root)
            return None if changes is None else (change.line() for change in changes)

        self._files.publish(root, lambda: self.project(root), lines)
