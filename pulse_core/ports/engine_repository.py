"""The engine's git repository for commands: staging is edited, checked and promoted."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from pulse_core.model.errors import PulseError
from pulse_core.model.text import listed
from pulse_core.ports.engine import Revision

_SHOWN = 5


class NothingToPromote(PulseError):
    """Staging holds nothing that main lacks."""


class RejectedFiles(NamedTuple):
    """Files of a rejected commit that a promote brings back: as they were rejected, and changed since."""

    rejected: str
    unchanged: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StagingState:
    """commit: where its head is (empty: nowhere); branch: what it is on (empty: detached); dirty: files that are
    not committed; conflicts: those that a merge left to be settled; under_way: the merge or rebase that was begun;
    ahead, behind: commits that main lacks, and that staging lacks; taken_back: the commit that a rollback took back
    and staging is built on (empty: none)."""

    path: Path
    commit: str = ""
    branch: str = "staging"
    missing: bool = False
    dirty: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    under_way: str = ""
    ahead: int = 0
    behind: int = 0
    taken_back: str = ""

    @property
    def detached(self) -> bool:
        """Whether it is on no branch."""
        return not self.missing and not self.branch

    @property
    def can_be_committed(self) -> bool:
        """Whether what is dirty may be committed to staging."""
        whole = not self.missing and not self.conflicts
        return whole and self.branch == "staging" and self.under_way in ("", "merge")

    def advice(self) -> Iterator[str]:
        """A sentence for each problem, with what would fix it."""
        if self.missing:
            yield f"{self.path} is missing; make it again with: upulse init"
            return
        if self.conflicts:
            files = listed(self.conflicts, _SHOWN)
            yield f"{files} hold both sides of a merge; settle them, then: git -C {self.path} add --all"
        if self.under_way:
            way = self.under_way
            yield f"a {way} is under way; end it with: git -C {self.path} {way} --continue (or --abort)"
        elif self.detached:
            yield f"{self.path} is on no branch; put it back with: upulse init"
        elif self.branch != "staging":
            yield f"{self.path} is on the branch {self.branch}; go back with: git -C {self.path} switch staging"
        nested = tuple(name for name in self.dirty if name.endswith("/"))  # as git writes another repository
        if nested:
            files = listed(nested, _SHOWN)
            yield f"{files} can't be committed, as another repository; move it away, or name it in .gitignore"
        elif self.dirty and not self.conflicts:
            yield f"{listed(self.dirty, _SHOWN)} not committed; a promote does that, or: git -C {self.path} commit --all"
        if self.taken_back:
            yield rejected_staging_advice(self.path, self.taken_back)
        elif self.behind:
            yield f"staging lacks {self.behind} of main's commits; take them in with: git -C {self.path} merge main"


def rejected_staging_advice(path: Path, taken_back: str) -> str:
    """The advice about a staging that still contains a rolled-back commit."""
    return (
        f"staging keeps your work, with what was taken back ({taken_back[:12]}): mend it there and promote it,"
        f" or drop it with: git -C {path} reset --keep main"
    )


class EngineRepository(Protocol):
    """`main` is production, `staging` a worktree for experiments. Every verb may be repeated after a kill.

    Authors are given as `NAME <EMAIL>`; commits are whole hashes. Raises PulseError.
    """

    def head(self) -> str:
        """The commit that main is."""

    def head_in_files(self) -> str:
        """The same, read quickly and without git; empty if that is not possible."""

    def staging(self) -> StagingState:
        """The state of staging; writes nothing."""

    def settled_staging(self) -> StagingState:
        """The same, once no other process is moving main or staging."""

    def mend(self) -> tuple[str, ...]:
        """Restore what is missing or detached, if nothing is lost by it; returns what was done, in sentences."""

    def commit_staging(self, message: str, author: str) -> str | None:
        """Commit everything in staging that is dirty and not ignored; None if nothing is."""

    def candidate(self, message: str, author: str) -> str:
        """Create the commit that main would be with staging merged; moves nothing. Raises NothingToPromote."""

    def returning(self, candidate: str) -> RejectedFiles | None:
        """The files of a rolled-back commit that a candidate brings back; None if there are none."""

    def contains(self, younger: str, older: str) -> bool:
        """Whether the older commit is the younger one, or among its ancestors."""

    def point_main(self, commit: str, expected: str) -> object:
        """Make the commit main if main is `expected`, then let files and staging follow; what did not follow."""

    def ensure(self, commit: str) -> Revision:
        """The commit's immutable export, made if it is not there, or not any more what was committed."""

    def resolve(self, word: str) -> str:
        """The commit of a branch or an abbreviated hash. Raises UnknownName or Ambiguous."""

    def differing(self, old: str, new: str) -> Collection[str]:
        """The names of the files that are not the same in two commits."""

    def diff(self, old: str, new: str) -> str:
        """What changed between two commits, as text."""
