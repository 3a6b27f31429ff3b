"""The engine's repository as one value; every verb may be repeated after a kill."""

import re
from collections.abc import Collection
from pathlib import Path

from pulse_adapters.git import commits, create_repository, rejected_commits, revisions, staging, update_main
from pulse_adapters.git.errors import NoRepository
from pulse_adapters.git.git_command import MAIN, STAGING, Git
from pulse_adapters.git.git_files import has_repository, read_main
from pulse_adapters.git.locks import repository_lock
from pulse_adapters.git.update_main import MainUpdate
from pulse_core.model.errors import Ambiguous, PulseError, UnknownName
from pulse_core.ports.engine import Revision
from pulse_core.ports.engine_repository import RejectedFiles, StagingState

_HEX = re.compile(r"[0-9a-f]{4,64}")
_BOOLS = re.compile(r"(?i)true|yes|on|false|no|off|[0-9]*")
_RECENT = 200


class Repository:
    """Implements `EngineRepository` on HOME/engine and HOME/staging."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._git = Git(home)
        if not has_repository(home):
            raise NoRepository(f"{self._git.engine} is no repository; make the engine with: upulse init")

    @classmethod
    def create(cls, home: Path, template: Path, author: str) -> tuple["Repository", tuple[str, ...]]:
        """Make what is missing of it; what was done, in sentences (none: it was all there)."""
        with repository_lock(home):
            done = tuple(create_repository.create_repository(Git(home), template, author))
        return cls(home), done

    def head(self) -> str:
        """The commit that main is."""
        if (commit := self._git.main()) is None:
            raise NoRepository(f"{self._git.engine} has no branch main; make the engine with: upulse init")
        return commit

    def fault(self, commit: str) -> str:
        """What git finds wrong with this commit, main, staging, and all that they hold; empty if nothing is."""
        if fault := self.unreadable():
            return fault
        has_staging = self._git.commit(STAGING) is not None
        heads = (commit, MAIN, *([STAGING] if has_staging else []))
        said = self._git.run("fsck", "--no-progress", "--no-dangling", "--no-reflogs", *heads)
        if said.exit:
            return "git fsck: " + (" ".join(f"{said.error} {said.text}".split())[:500] or f"exit {said.exit}")
        if has_staging or not self._git.staging.exists():
            return ""
        return f"the branch staging of {self._git.folder} can't be read: what is not promoted yet may be lost"

    def unreadable(self) -> str:
        """What git can't read of the repository besides its objects: its branches, its settings; empty if it can."""
        refs = self._git.run("for-each-ref", "--format=%(refname)")
        if refs.exit or refs.error:
            return f"git can't read all branches of {self._git.folder}: {' '.join(refs.error.split())[:500]}"
        if fault := _settings_fault(self._git):
            return f"git can't read {self._git.folder}/config, which only your own calls of git need: {fault}"
        return ""

    def head_in_files(self) -> str:
        """The same, read from the files alone; empty if that can't be told so."""
        return read_main(self.home)

    def ensure(self, commit: str) -> Revision:
        """The commit's immutable export, laid out now if it was not before, or is not any more what was committed."""
        return revisions.ensure_revision(self.home, commit)

    def settled_staging(self) -> StagingState:
        """How staging stands, once nobody is moving main or staging."""
        with repository_lock(self.home):  # whoever moves main has moved staging, too, when it is done
            return self.staging()

    def staging(self) -> StagingState:
        """How staging stands; writes nothing."""
        return staging.state(self._git)

    def is_staging_foreign(self) -> bool:
        """Whether `staging/.git` leads to no worktree of this repository."""
        return self._git.is_staging_foreign()

    def place_before(self) -> Path | None:
        """The home in which staging and this repository were linked; None if their links don't agree."""
        return create_repository.place_before(self._git)

    def mend(self) -> tuple[str, ...]:
        """Put back what is missing or detached, as far as nothing is lost by it; what was done, in sentences.

        Raises CannotMend with what a person could do.
        """
        with repository_lock(self.home):
            done = tuple(create_repository.repair_repository(self._git))
            update_main.finish(self._git)
            return done

    def commit_staging(self, message: str, author: str) -> str | None:
        """Commit everything in staging that is dirty and not ignored; None if nothing is."""
        with repository_lock(self.home):
            return staging.commit_staging(self._git, message, author)

    def candidate(self, message: str, author: str) -> str:
        """What main would be with staging merged into it; nothing moves. Raises MergeConflict, NothingToPromote."""
        return commits.merge_candidate(self._git, message, author)

    def returning(self, candidate: str) -> RejectedFiles | None:
        """What a candidate brings back of a commit that was taken back; None if nothing."""
        return rejected_commits.restored_parts(self._git, candidate)

    def contains(self, younger: str, older: str) -> bool:
        """Whether the older commit is the younger one, or among its ancestors."""
        return self._git.contains(younger, older)

    def reverting(self, to: str, message: str, author: str) -> str:
        """A commit on top of main with the content of `to` (main itself, if it has that); nothing moves."""
        return commits.revert_commit(self._git, to, message, author)

    def point_main(self, commit: str, expected: str) -> MainUpdate:
        """Make the commit main if main is `expected`, then let files and staging follow. Raises MainMoved."""
        with repository_lock(self.home):
            return update_main.point_main(self._git, commit, expected)

    def keep_branch(self, name: str, commit: str) -> str:
        """Keep a commit under a branch; its name, which has a number if that name was another's."""
        with repository_lock(self.home):
            return commits.keep_branch(self._git, name, commit)

    def recent_commits(self, limit: int) -> list[str]:
        """The newest commits of main, newest first; what was merged into it is none of them."""
        return self._git("log", "--first-parent", f"--max-count={limit}", "--format=%H", MAIN, "--").split()

    def differing(self, old: str, new: str) -> Collection[str]:
        """The names of the files that are not the same in two commits."""
        return self._git.differing(old, new)

    def diff(self, old: str, new: str) -> str:
        """What changed between two commits, as text."""
        return self._git("diff", "--no-color", "--no-ext-diff", "--no-textconv", old, new, "--")

    def resolve(self, word: str) -> str:
        """The commit that a word means: a branch, or the beginning of a hash; raises UnknownName with the nearest."""
        if not word or word.startswith("-") or "\0" in word:
            raise PulseError(f"{word!r} names no commit; give a branch, as 'staging', or a commit's hash")
        git = self._git
        if commit := git.commit(f"refs/heads/{word}") or self._abbreviated(word) or git.commit(word):
            return commit
        branches = git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").splitlines()
        known = [*branches, *(commit[:12] for commit in self.recent_commits(_RECENT))]
        raise UnknownName("commit or branch", word, known)

    def _abbreviated(self, word: str) -> str | None:
        """The only commit whose hash begins so."""
        if not _HEX.fullmatch(word):
            return None
        found = (self._git.ask("rev-parse", f"--disambiguate={word}") or "").split()
        known = [one for one in found if self._git.ask("cat-file", "-t", one) == "commit"]
        if len(known) > 1:
            raise Ambiguous("commit", word, [one[:12] for one in known[:5]])
        return known[0] if known else None


def _settings_fault(git: Git) -> str:
    """Why git could not work with the repository's own settings, which only its owner's calls read; empty if it could."""
    said = git.run("config", "--file", str(git.folder / "config"), "--no-includes", "--null", "--list")
    if said.exit:
        return " ".join(said.error.split())[:500]
    for key, _, value in (entry.partition("\n") for entry in said.text.split("\0")):
        is_good = {
            "core.repositoryformatversion": value in ("0", "1", ""),
            "core.bare": value.lower() in ("false", "no", "off", "0", ""),
            "core.filemode": _BOOLS.fullmatch(value),
            "core.logallrefupdates": value.lower() == "always" or _BOOLS.fullmatch(value),
        }.get(key, True)
        if not is_good:
            return f"{key} is {value!r}"
    return ""
