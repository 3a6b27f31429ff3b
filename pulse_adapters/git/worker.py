"""The git worker: receives a home, a verb and arguments, and answers once.

It is a process of its own since git may hang on a bad disk, and GitPython takes as much memory as the daemon.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pulse_adapters.git.repository import Repository
from pulse_adapters.git.revisions import RevisionStore
from pulse_adapters.workers import child_side
from pulse_adapters.workers.framing import Message

KEPT, AGE_S = 20, 3_600.0
"""Commits of main that stay laid out, and how long every other one does: somebody may just be trying it."""


def _ensure(home: Path, commit: str) -> dict[str, Any]:
    revisions = RevisionStore(home)
    laid = revisions.laid(commit)
    revisions.sweep({commit, *(one.commit for one in Repository(home).log(KEPT))}, AGE_S)
    return {"path": str(laid.path), "altered": laid.altered}


def _point_main(home: Path, commit: str, expected: str) -> dict[str, Any]:
    return Repository(home).point_main(commit, expected)._asdict()


def _head(home: Path) -> str:
    return Repository(home).head()


def _going_back(home: Path, to: str, rejected: str, message: str, author: str) -> dict[str, Any]:
    """All of a way back but its last step, in one life: each start of this program takes a third of a second."""
    repository = Repository(home)
    branch = repository.keep_branch(f"rejected/{rejected[:12]}", rejected)
    commit = repository.reverting(to, message, author)
    return {"commit": commit, "branch": branch, **_ensure(home, commit)}


VERBS: Mapping[str, Callable[..., Any]] = {
    "ensure": _ensure,
    "going-back": _going_back,
    "head": _head,
    "point-main": _point_main,
}


def answer(request: Message) -> Any:
    """The result of a request. Raises PulseError if it fails."""
    return VERBS[request["verb"]](Path(request["home"]), *request["words"])


if __name__ == "__main__":
    child_side.answer_once(answer)
