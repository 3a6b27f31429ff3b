"""The commits that are laid out to be run, each in a folder of its own name."""

from collections.abc import Collection
from pathlib import Path

from pulse_adapters.git.export import BEGUN, export, remove
from pulse_adapters.git.locks import repository_lock
from pulse_adapters.git.revision_path import COMMIT, LaidOutRevision, objects_folder, revision_folder
from pulse_adapters.git.tree_hash import holds_commit


class RevisionStore:
    """HOME/revisions: a folder there is whole, read-only, and what its commit says."""

    def __init__(self, home: Path) -> None:
        self.home, self.folder = home, home / "revisions"

    def path(self, commit: str) -> Path:
        """Where a commit is laid out, if it is; takes the whole hash."""
        return revision_folder(self.home, commit)

    def ensure(self, commit: str) -> Path:
        """The folder of a commit, laid out now if it was not before, or is not any more what was committed."""
        return self.laid(commit).path

    def laid(self, commit: str) -> LaidOutRevision:
        """The same, and where what was there before lies, if it was something else."""
        path = self.path(commit)
        if holds_commit(path, commit, objects_folder(self.home)):
            return LaidOutRevision(path)
        from pulse_adapters.git.git_command import Git  # slow to import, and mostly the commit lies there

        with repository_lock(self.home):
            aside = export(Git(self.home), commit, path)
        return LaidOutRevision(path, str(aside or ""))

    def sweep(self, keep: Collection[str], age_s: float = 0.0) -> tuple[str, ...]:
        """Remove all but these commits and those laid out so lately, and what was left half-way; the commits that went."""
        if not self.folder.is_dir():
            return ()
        with repository_lock(self.home):
            for left in self.folder.glob(f"{BEGUN}*"):
                remove(left)
            gone = [
                one for one in self.folder.iterdir() if COMMIT.fullmatch(one.name) and one.name not in keep
            ]
            for one in gone:
                remove(
                    one.rename(self.folder / f"{BEGUN}{one.name}")
                )  # first: half of it must not pass for all
        return tuple(sorted(one.name for one in gone))
