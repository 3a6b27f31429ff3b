"""The machine's resources: when they are short, and what may be done about it, mildest first."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from pulse_core.model.durations import UNITS
from pulse_core.model.pattern import search_pattern
from pulse_core.settings.groups import (
    PATTERN_CHECK,
    AbsolutePath,
    Bound,
    Duration,
    Group,
    Regex,
    RootedPath,
    context_check,
    distinct,
)

SECOND, MINUTE, DAY = UNITS["s"], UNITS["m"], UNITS["d"]
SHARED = {
    *("bin", "boot", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "run", "sbin"),
    *("srv", "sys", "usr", "var", "~"),
}
"""Directories of the root, and a user's home, which hold far more than the files of one program."""

UNRELATED_COMMANDS = (
    ("/usr/lib/systemd/systemd --user", "/usr/sbin/sshd -D", "/usr/bin/dbus-daemon --system"),
    ("python3 worker.py", "-bash", "sshd: root"),
)
"""Unrelated command lines: a pattern that matches all of a row matches everything."""


TREE_CHECK = "tree_check"
"""In a validation's context: a function that raises ValueError for a directory in which nothing may be deleted."""


def _tree(text: str) -> str:
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError(f"{text!r} goes up again; write it without '..'")
    if not parts or (len(parts) == 1 and parts[0] in SHARED) or (len(parts) == 2 and parts[0] == "home"):
        raise ValueError(f"{text!r} holds far more than what may go; name a directory in it")
    return text


def _selective(text: str, info: ValidationInfo) -> str:
    checked = (info.context or {}).get(PATTERN_CHECK, search_pattern) is None
    pattern = None if checked else search_pattern(text)
    for strangers in UNRELATED_COMMANDS:
        if pattern and all(pattern.finds(line.encode()) for line in strangers):
            found = ", ".join(repr(line) for line in strangers)
            raise ValueError(f"{text!r} is found in {found}: that is no choice; name what may be stopped")
    return text


Tree = Annotated[RootedPath, AfterValidator(_tree), context_check(TREE_CHECK)]
"""A directory in which files may be deleted: never one that holds a whole machine, or everything of a user."""


class DiskBound(Bound):
    """Bounds for the space, and for the inodes, of the file system that holds a path."""

    path: AbsolutePath = Field("/", description="a path on the file system", examples=["/srv"])
    clear: float = Field(0.85, ge=0, lt=1, description="share below which it is cleared again")


class SessionsSettings(Group):
    """`sessions`: old sessions of agents that may be archived when space is short."""

    root: Tree = Field(description="directory whose entries are sessions", examples=["~/.openclaw/sessions"])
    keep: Duration = Field(
        7 * DAY, ge=0, description="how long a session that nobody touched is left where it is"
    )
    archive: RootedPath | None = Field(
        None,
        description="directory for the archives, if not the home's archive/",
        examples=["/srv/archive/sessions"],
    )
    retain: Duration = Field(90 * DAY, gt=0, description="how long an archive is kept")

    @model_validator(mode="after")
    def _archives_are_no_sessions(self) -> "SessionsSettings":
        if self.archive and f"{self.archive.rstrip('/')}/".startswith(f"{self.root.rstrip('/')}/"):
            raise ValueError("archive lies in root, so archives would be archived; take another directory")
        return self


def _a_path_each(bounds: tuple[DiskBound, ...]) -> tuple[DiskBound, ...]:
    distinct([bound.path for bound in bounds])
    return bounds


class ResourcesSettings(Group):
    """`[resources]`: when the machine is short of something, and what may be cleaned, archived or stopped then."""

    memory: Bound = Field(
        Bound.model_construct(for_=30 * SECOND), description="memory in use, as a share of all"
    )
    swap: Bound = Field(
        Bound.model_construct(raise_=0.9, clear=0.7, for_=5 * MINUTE),
        description="swap in use, as a share of all",
    )
    disk: Annotated[tuple[DiskBound, ...], AfterValidator(_a_path_each)] = Field(
        (DiskBound(),), description="file systems whose space and inodes are watched"
    )
    pressure: Bound = Field(
        Bound.model_construct(raise_=0.4, clear=0.1, for_=30 * SECOND),
        description="share of the last ten seconds in which everything stood still for want of memory or I/O",
    )
    clean: tuple[Tree, ...] = Field(
        (),
        description="directories whose old files may be deleted when disk space is short",
        examples=[["~/.cache/agent"]],
    )
    clean_age: Duration = Field(
        3_600 * SECOND, ge=0, description="how long a file must be untouched before it may be deleted"
    )
    sessions: SessionsSettings | None = Field(
        None,
        description="old sessions that may be archived",
        examples=[{"root": "~/.openclaw/sessions", "keep": "7d"}],
    )
    stop: tuple[Annotated[Regex, AfterValidator(_selective)], ...] = Field(
        (),
        description="patterns of command lines, the worst of which may be stopped when memory is short",
        examples=[["batch-worker"]],
    )
    patience: Duration = Field(
        MINUTE, gt=0, description="how long a measure is given to help before the next one is taken"
    )

    @field_validator("memory", "swap", "pressure", mode="before")
    @classmethod
    def _rest_by_default(cls, value: Any, info: ValidationInfo) -> Any:
        """A table that says one key keeps the others of this setting, not those of any bound."""
        usual = cls.model_fields[info.field_name or ""].default
        known = {"raise": usual.raise_, "clear": usual.clear, "for": f"{usual.for_}us"}
        return {**known, **value} if isinstance(value, dict) else value

    @field_validator("disk", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        one_or_many = [value] if isinstance(value, dict) else value
        return tuple(one_or_many) if isinstance(one_or_many, list) else one_or_many
