"""The program that the daemon has run for it: `HOME VERB WORD…`, one line of JSON back.

It is a process of its own since git may hang on a bad disk, and GitPython takes as much memory as the daemon.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pulse_adapters.git.repository import Repository
from pulse_adapters.git.revisions import Revisions
from pulse_core.model.errors import PulseError


def _ensure(home: Path, commit: str) -> dict[str, Any]:
    return {"path": str(Revisions(home).ensure(commit))}


def _point_main(home: Path, commit: str, expected: str) -> dict[str, Any]:
    return Repository(home).point_main(commit, expected)._asdict()


def _keep_branch(home: Path, name: str, commit: str) -> dict[str, Any]:
    return {"branch": Repository(home).keep_branch(name, commit)}


def _head(home: Path) -> dict[str, Any]:
    return {"commit": Repository(home).head()}


def _reverting(home: Path, to: str, message: str, author: str) -> dict[str, Any]:
    return {"commit": Repository(home).reverting(to, message, author)}


VERBS: Mapping[str, tuple[int, Callable[..., dict[str, Any]]]] = {
    "ensure": (1, _ensure),
    "head": (0, _head),
    "keep-branch": (2, _keep_branch),
    "point-main": (2, _point_main),
    "reverting": (3, _reverting),
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
