"""The engine's repository in memory: a commit is a name with its content, and staging is a text that was saved."""

from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path

from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.ports import Revision
from pulse_core.ports.engine_repository import NothingToPromote, RejectedFiles, StagingState


@dataclass
class MemoryEngineRepository:
    """Implements `EngineRepository`. saved: what lies in staging, not committed yet."""

    saved: str = ""
    contents: dict[str, str] = field(default_factory=dict)
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        first = self._committed(self.saved)
        self.branches = {"main": first, "staging": first}

    def head(self) -> str:
        return self.branches["main"]

    head_in_files = head

    def staging(self) -> StagingState:
        tip, main = self.branches["staging"], self.head()
        dirty = ("engine.py",) if self.saved != self.contents[tip] else ()
        ahead, behind = self._line(tip) - self._line(main), self._line(main) - self._line(tip)
        return StagingState(Path("/staging"), tip, dirty=dirty, ahead=len(ahead), behind=len(behind))

    settled_staging = staging

    def mend(self) -> tuple[str, ...]:
        return ()

    def commit_staging(self, message: str, author: str) -> str | None:
        tip = self.branches["staging"]
        if self.saved == self.contents[tip]:
            return None
        self.branches["staging"] = self._committed(self.saved, tip)
        return self.branches["staging"]

    def candidate(self, message: str, author: str) -> str:
        main, tip = self.head(), self.branches["staging"]
        if self.contents[main] == self.contents[tip]:
            raise NothingToPromote("staging holds nothing that main lacks")
        return self._committed(self.contents[tip], main, tip)

    def returning(self, candidate: str) -> RejectedFiles | None:
        return None

    def contains(self, younger: str, older: str) -> bool:
        return older in self._line(younger)

    def point_main(self, commit: str, expected: str) -> object:
        if self.head() not in (commit, expected):
            raise PulseError(f"main is {self.head()[:12]} and not {expected[:12]}")
        if self.contains(commit, self.branches["staging"]):
            self.branches["staging"] = commit
        self.branches["main"] = commit
        return None

    def ensure(self, commit: str) -> Revision:
        if commit not in self.contents:
            raise PulseError(f"there is no commit {commit}")
        return Revision(commit, f"/revisions/{commit}")

    def resolve(self, word: str) -> str:
        found = self.branches.get(word) or next((one for one in self.contents if one.startswith(word)), "")
        if not word or not found:
            raise UnknownName("commit or branch", word, self.branches)
        return found

    def diff(self, old: str, new: str) -> str:
        return (
            ""
            if self.contents[old] == self.contents[new]
            else f"-{self.contents[old]}\n+{self.contents[new]}"
        )

    def _committed(self, content: str, *parents: str) -> str:
        commit = sha1("\0".join((content, *parents)).encode(), usedforsecurity=False).hexdigest()
        self.contents[commit], self.parents[commit] = content, parents
        return commit

    def _line(self, commit: str) -> set[str]:
        """The commit and all before it."""
        return {commit}.union(*(self._line(parent) for parent in self.parents[commit]))
