"""The program that the daemon has run for it: `HOME VERB WORD…`, one line of JSON back.

It is a process of its own since git may hang on a bad disk, and GitPython takes as much memory as the daemon.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pulse_adapters.git.repository import Repository
from pulse_adapters.git.revisions import RevisionStore
from pulse_core.model.errors import PulseError

KEPT, AGE_S = 20, 3_600.0
"""Commits of main that stay laid out, and how long every other one does: somebody may just be trying it."""


def _ensure(home: Path, commit: str) -> dict[str, Any]:
    revisions = RevisionStore(home)
    laid = revisions.laid(commit)
    revisions.sweep({commit, *(one.commit for one in Repository(home).log(KEPT))}, AGE_S)
    return {"path": str(laid.path), "altered": laid.altered}


def _point_main(home: Path, commit: str, expected: str) -> dict[str, Any]:
    return Repository(home).point_main(commit, expected)._asdict()


def _head(home: Path) -> dict[str, Any]:
    return {"commit": Repository(home).head()}


def _going_back(home: Path, to: str, rejected: str, message: str, author: str) -> dict[str, Any]:
    """All of a way back but its last step, in one life: each start of this program takes a third of a second."""
    repository = Repository(home)
    branch = repository.keep_branch(f"rejected/{rejected[:12]}", rejected)
    commit = repository.reverting(to, message, author)
    return {"commit": commit, "branch": branch, **_ensure(home, commit)}


VERBS: Mapping[str, tuple[int, Callable[..., dict[str, Any]]]] = {
    "ensure": (1, _ensure),
    "going-back": (4, _going_back),
    "head": (0, _head),
    "point-main": (2, _point_main),
}


def answer(words: Sequence[str]) -> dict[str, Any]:
    """What came of an order; `error` if it can't be done."""
    if len(words) < 2 or words[1] not in VERBS or len(words) - 2 != VERBS[words[1]][0]:
        return {"error": f"usage: HOME VERB WORD…, where VERB is one of {', '.join(VERBS)}"}
    home, verb, *rest = words
    try:
        return VERBS[verb][1](Path(home), *rest)
    except PulseError as error:
        return {"error": str(error), "kind": type(error).__name__}


if __name__ == "__main__":
    said = answer(sys.argv[1:])
    print(json.dumps(said))
    sys.exit(1 if "error" in said else 0)
