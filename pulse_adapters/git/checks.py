"""What the doctor asks of the repository of the user's rules."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pulse_adapters.workers.file_systems import answer_in_time
from pulse_core.app.doctor import FAIL, OK, WARN, Finding
from pulse_core.model.errors import PulseError

MEND = "put back what is missing of it: upulse init"


@dataclass(frozen=True)
class RepositoryChecks:
    """Checks of the engine's repository. in_force: the commit that the log calls promoted; empty if there is none."""

    home: Path
    in_force: Callable[[], str]

    def engine(self) -> Iterator[Finding]:
        """The repository of the user's rules, and the host that runs them."""
        engine = self.home / "engine"
        if not answer_in_time(str(engine), engine.exists):
            yield Finding("engine", OK, "none; upulse init makes one")
            return
        # Slow to import, and there may be no engine.
        from pulse_adapters.git.git_files import repository_fault
        from pulse_adapters.git.repository import Repository
        from pulse_adapters.git.revisions import ALTERED, altered_revisions

        try:
            repository = Repository(self.home)
            is_foreign = repository.is_staging_foreign()
            main, advice = repository.head(), [] if is_foreign else list(repository.staging().advice())
            in_force = self.in_force()
            fault = repository_fault(self.home) or repository.fault(in_force or main)
        except PulseError as error:
            yield Finding("engine", WARN, str(error), MEND)
            return
        if fault:
            remedy = "mend it by hand, or move engine/ away and put the one of a backup there"
            yield Finding("engine", FAIL, fault, remedy)
        elif in_force and in_force != main:
            words = f"{in_force[:12]} is in force, but main is {main[:12]}"
            yield Finding(
                "engine", WARN, words, "promote what you want in force; main is moved by promotes alone"
            )
        else:
            yield Finding("engine", OK, f"{main[:12]} is in force" if in_force else f"main is {main[:12]}")
        if is_foreign and (place := repository.place_before()):
            words = (
                f"{self.home / 'staging'} belongs to {place}, where this home was, or of which it is a copy"
            )
            yield Finding(
                "staging",
                FAIL,
                words,
                "upulse doctor --repair links it to the engine here",
                lambda: "; ".join(repository.mend()),
            )
        elif is_foreign:
            link = self.home / "staging" / ".git"
            words = (
                f"{link} leads to no worktree of {engine}: whoever runs git there runs what is named there"
            )
            yield Finding(
                "staging", FAIL, words, f"look at it, move it away, then: {MEND.partition(': ')[2]}"
            )
        for sentence in advice:
            yield Finding("staging", OK, sentence)
        for commit in altered_revisions(self.home):
            words = (
                f"somebody changed the files of {commit[:12]} after they were laid out; they were made anew"
            )
            kept = self.home / "revisions" / f"{ALTERED}{commit}"
            yield Finding("revisions", WARN, words, f"look at what was found, then remove it: {kept}")
