"""A command that is killed at a step of its own: `python -m tests.integration.engine.dying STEP before|after WORD…`.

With `serve` as its first word it is the daemon.
"""

import inspect
import os
import signal
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from pulse_adapters.git.git_client import GitClient
from pulse_adapters.git.repository import Repository
from pulse_core.app.engine import promote
from upulse_cli import serve
from upulse_cli.__main__ import main

STEPS: Mapping[str, tuple[Any, str]] = {
    "mend": (Repository, "mend"),
    "commit-staging": (Repository, "commit_staging"),
    "candidate": (Repository, "candidate"),
    "export": (Repository, "ensure"),
    "gates": (promote, "pass_gates"),
    "request": (promote, "request"),
    "lay-out": (GitClient, "ensure"),
    "going-back": (GitClient, "going_back"),
    "point-main": (GitClient, "point_main"),
}
"""The steps of a promote, and those of the daemon that answers it."""


def mortal(step: Callable[..., Any], when: str) -> Callable[..., Any]:
    """The same step, before or after which the process is killed."""

    def die(at: str) -> None:
        if at == when:
            os.kill(os.getpid(), signal.SIGKILL)

    if inspect.iscoroutinefunction(step):

        @wraps(step)
        async def slowly(*args: Any) -> Any:
            die("before")
            value = await step(*args)
            die("after")
            return value

        return slowly

    @wraps(step)
    def done(*args: Any) -> Any:
        die("before")
        value = step(*args)
        die("after")
        return value

    return done


if __name__ == "__main__":
    name, when, *words = sys.argv[1:]
    owner, verb = STEPS[name]
    setattr(owner, verb, mortal(getattr(owner, verb), when))
    if words[0] == "serve":
        sys.argv = words
        sys.exit(serve.main())
    sys.exit(main(words))
