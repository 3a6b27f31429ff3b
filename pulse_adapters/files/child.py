"""Having a program of this room run in a child, and its answer."""

import json
import sys
from collections.abc import Mapping
from typing import Protocol

from pulse_core.model.errors import PulseError
from pulse_core.model.json_types import Json


class Ran(Protocol):
    """How a command ended: its exit code, and what it printed."""

    @property
    def exit(self) -> int: ...

    @property
    def output(self) -> str: ...


class Runner(Protocol):
    """Runs a command to its end; if it overruns or is cancelled, its whole tree is ended first."""

    async def run(
        self, argv: list[str], *, timeout: float, cwd: str | None = None, marker: str = ""
    ) -> Ran: ...


async def ask(
    runner: Runner, program: str, order: Mapping[str, Json], *, seconds: float, marker: str
) -> dict[str, Json]:
    """What the program `pulse_adapters.files.PROGRAM` answers; raises PulseError with its own words if it can't.

    It is told to end by itself in good time before it would be ended.
    """
    order = {**order, "seconds": seconds * 0.8, "effect": marker}
    argv = [sys.executable, "-P", "-m", f"pulse_adapters.files.{program}", json.dumps(order)]
    ran = await runner.run(argv, timeout=seconds, cwd="/", marker=marker)
    try:
        answer = _readable(json.loads(ran.output.rstrip().rpartition("\n")[2]))
    except ValueError:
        words = " ".join(ran.output.split())[-500:] or "it said nothing"
        raise PulseError(f"{program} ended with exit {ran.exit}: {words}") from None
    if not isinstance(answer, dict) or "error" in answer:
        raise PulseError(str(answer["error"]) if isinstance(answer, dict) else f"{program} said {answer!r}")
    return answer


def _readable(answer: Json) -> Json:
    """The answer without halves of characters, as odd file names have them: no log could hold those."""
    return json.loads(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))
