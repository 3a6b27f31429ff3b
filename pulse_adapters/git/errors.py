"""What can go wrong with a repository, and what would help."""

from collections.abc import Sequence
from pathlib import Path

from pulse_core.model.errors import PulseError

_SHOWN = 500


class NoGit(PulseError):
    """There is no git that can be used."""


class GitFailed(PulseError):
    """Git said no; the message is git's own."""


class AnotherRepository(GitFailed):
    """A folder of the engine's files holds a repository of its own, which git must not visit."""

    def __init__(self, at: Path, name: str, *, is_committed: bool) -> None:
        way = (
            f"take it out with: git -C {at} rm --cached {name}"
            if is_committed
            else "or name it in .gitignore"
        )
        super().__init__(
            f"{at / name} is another repository, and none can be part of the engine; move it away, {way}"
        )


class ReservedName(GitFailed):
    """A file lies where some system takes the folder for a repository's own, as `.GIT`: git leaves it out in silence."""

    def __init__(self, at: Path, name: str) -> None:
        super().__init__(
            f"{at / name} has a name that git keeps for itself; rename it, or name it in .gitignore"
        )


class SpecialFile(GitFailed):
    """Among the engine's files is something that no commit can hold, and that git passes over in silence."""

    def __init__(self, path: Path, kind: str) -> None:
        shown = path if len(str(path)) < _SHOWN else f"{str(path)[:_SHOWN]}…"
        super().__init__(
            f"{shown} is a {kind}, which can't be part of the engine; remove it, or name it in .gitignore"
        )


class NoRepository(PulseError):
    """The home has no engine yet."""


class CannotMend(PulseError):
    """The repository is in a state that only a person can judge; the message says what they could do."""


class MainMoved(PulseError):
    """Main is not the commit that somebody thought it was: another promote or rollback came first."""


class MergeConflict(PulseError):
    """Staging and main both changed the same places."""

    def __init__(self, files: Sequence[str], advice: str) -> None:
        super().__init__(f"staging and main both changed {', '.join(files)}; {advice}")
        self.files = tuple(files)


class UnsafeTree(PulseError):
    """A commit holds something that must not be laid out as files, as a link that points outside."""
