"""What happens to the guidance of projects. Subject of each event: the project's root."""

from typing import Annotated, NamedTuple

from pydantic import Field, StringConstraints

from pulse_core.guidance.protocol import EVENT_ID, FILES, ChangeKind
from pulse_core.model.payload import Payload, Role, Wake

EventId = Annotated[str, StringConstraints(pattern=rf"^{EVENT_ID.pattern}$")]
OldEventId = Annotated[str, StringConstraints(pattern=r"^\S{1,100}$")]
"""Of an event that another program has recorded."""
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
File = Annotated[str, StringConstraints(pattern=rf"^(?:{'|'.join(FILES)})$")]
Time = Annotated[int, Field(ge=0, lt=1 << 62)]
"""UTC microseconds."""


class ImportedChange(NamedTuple):
    """A change that was recorded before Pulse was there."""

    id: OldEventId
    at: Time
    kind: ChangeKind
    file: File
    sha256: Sha256 | None
    size: Annotated[int, Field(ge=0)] | None


MOST_IMPORTED = 2_000
"""Changes in one event: more hold up the daemon that checks it."""


class GuidanceImported(Payload, kind="guidance-imported", by=Role.PERSON, wakes=Wake.NEVER):
    """Changes of a project that another program had recorded, in their order, before its files were looked at here."""

    number: int = Field(ge=1, description="place of the first of them")
    changes: tuple[ImportedChange, ...] = Field(min_length=1, max_length=MOST_IMPORTED)


class GuidanceInitialized(Payload, kind="guidance-initialized", by=Role.PERSON, wakes=Wake.NEVER):
    """The files of a project are looked at from now on; what they hold now is no change."""

    hashes: dict[File, Sha256 | None]
    initialized_at: Time | None = Field(None, description="when, if another program has done it before")
    acknowledged: OldEventId | None = Field(None, description="what was acknowledged to that program last")
    acknowledged_number: int = Field(
        0, ge=0, description="its place among the imported changes; 0: it is not there"
    )
    acknowledged_plan: Sha256 | None = None
    acknowledged_at: Time | None = None


class GuidanceChanged(Payload, kind="guidance-changed", by=Role.PERSON, wakes=Wake.SOON):
    """A file of a project holds something else than before."""

    number: int = Field(ge=1, description="its place among all changes of the project")
    event_id: EventId
    change: ChangeKind
    file: File
    sha256: Sha256 | None = Field(None, description="of the bytes; none: it was deleted")
    size: int | None = Field(None, ge=0)


class GuidanceAcknowledged(Payload, kind="guidance-acknowledged", by=Role.AGENT, wakes=Wake.SOON):
    """An agent has replanned for the newest change of guidance or constraints, and for all before it."""

    event_id: OldEventId
    plan_sha256: Sha256 | None = Field(None, description="of the plan; none: there is no such file")


class GuidanceWatched(Payload, kind="guidance-watched", by=Role.PERSON, wakes=Wake.SOON):
    """The daemon looks at the files of this project, too."""


class GuidanceUnwatched(Payload, kind="guidance-unwatched", by=Role.PERSON, wakes=Wake.SOON):
    """The daemon looks at the files of this project no more."""


KINDS: tuple[type[Payload], ...] = (
    GuidanceImported, GuidanceInitialized, GuidanceChanged, GuidanceAcknowledged, GuidanceWatched, GuidanceUnwatched,
)  # fmt: skip
