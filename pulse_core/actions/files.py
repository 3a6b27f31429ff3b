"""Actions that free disk space."""

from pydantic import BaseModel, ConfigDict, Field

from pulse_core.actions.declaration import ActionDeclaration
from pulse_core.model import actions
from pulse_core.settings.groups import AbsolutePath, RootedPath


class CleanParams(BaseModel):
    """What to clean; all that the settings allow if nothing else is said."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    roots: tuple[RootedPath, ...] = Field(
        (), description="directories; every one that is allowed if not given"
    )
    older_than_us: int | None = Field(
        None, ge=0, description="how long a file must be untouched, microseconds; the setting's if not given"
    )
    dry_run: bool = Field(False, description="only tell what would be deleted")
    limit_bytes: int | None = Field(None, gt=0, description="delete no more than this")
    near: AbsolutePath | None = Field(
        None, description="only what lies on the file system of this path, where room is short"
    )
    for_condition: str = Field("", description="the condition that this is an answer to")


class ArchiveParams(BaseModel):
    """Which sessions, and where to, is in the settings alone."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    near: AbsolutePath | None = Field(
        None, description="only if the sessions lie on the file system of this path, where room is short"
    )
    for_condition: str = Field("", description="the condition that this is an answer to")


CLEAN_PATHS = ActionDeclaration(
    actions.CLEAN_PATHS,
    CleanParams,
    "Deletes what nobody touched for long beneath the directories that the settings name, and nowhere else.",
    is_reserved=True,
)
ARCHIVE_SESSIONS = ActionDeclaration(
    actions.ARCHIVE_SESSIONS,
    ArchiveParams,
    "Packs away the sessions that nobody touched for long, and deletes them once the archive was read back.",
    is_reserved=True,
)
