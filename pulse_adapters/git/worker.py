"""The git worker: receives a home, a verb and arguments, and answers once.

It is a process of its own since git may hang on a bad disk.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pulse_adapters.git.git_command import PULSE
from pulse_adapters.git.repository import Repository
from pulse_adapters.git.revisions import remove_revisions
from pulse_adapters.workers import child_side
from pulse_adapters.workers.framing import Message
from pulse_core.ports.engine import Revision

KEPT, AGE_S = 20, 3_600.0
"""Commits of main that stay laid out, and how long every other one does: somebody may just be trying it."""


def _ensure(repository: Repository, commit: str) -> Revision:
    revision = repository.ensure(commit)
    remove_revisions(repository.home, {commit, *repository.recent_commits(KEPT)}, AGE_S)
    return revision


def _going_back(repository: Repository, to: str, rejected: str, message: str) -> tuple[Revision, str]:
    """All of a way back but its last step, in one life: each start of this program takes a third of a second."""
    branch = repository.keep_branch(f"rejected/{rejected[:12]}", rejected)
    return _ensure(repository, repository.reverting(to, message, PULSE)), branch


VERBS: Mapping[str, Callable[..., Any]] = {
    "ensure": _ensure,
    "fault": Repository.fault,
    "going-back": _going_back,
    "head": Repository.head,
    "point-main": Repository.point_main,
}


def answer(request: Message) -> Any:
    """The result of a request. Raises PulseError if it fails."""
    return VERBS[request["verb"]](Repository(Path(request["home"])), *request["words"])


if __name__ == "__main__":
    child_side.answer_once(answer)
