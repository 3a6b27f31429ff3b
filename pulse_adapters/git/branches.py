"""Branches that keep a commit, so that nothing which was promoted, rejected or found lying about is lost."""

from itertools import count

from pulse_adapters.git.git_command import MAIN, STAGING, Git
from pulse_core.model.errors import PulseError

NEW = "0" * 40


def keep_branch(git: Git, name: str, commit: str) -> str:
    """Keep the commit under this branch, or under `NAME-2` and so on if it is another's; the name it has."""
    if git.ask("check-ref-format", f"refs/heads/{name}") is None or f"refs/heads/{name}" in (MAIN, STAGING):
        raise PulseError(f"{name!r} can't be the name of a branch that keeps a commit; try 'rejected/NAME'")
    if (whole := git.commit(commit)) is None:
        raise PulseError(f"there is no commit {commit} in {git.engine}")
    for number in count(1):
        called = name if number == 1 else f"{name}-{number}"
        before = git.commit(f"refs/heads/{called}")
        if before is None:
            git("update-ref", "-m", "pulse: kept", f"refs/heads/{called}", whole, NEW)
        if before in (None, whole):
            return called
    raise AssertionError("the numbers have ended")
