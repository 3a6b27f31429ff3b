"""Commands that say by their exit whether something is well."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from asyncio import Future

NO_VARIABLES: Mapping[str, str] = {}


class CommandRequest(NamedTuple):
    """A command that must exit with 0 within so many microseconds. whose: on whose behalf it is run, as `probe:gateway`:
    what an earlier one of the same has left is ended first; env: beside the daemon's own; user: who it runs as, if not as
    the daemon, and in which further group."""

    whose: str
    argv: Sequence[str]
    timeout_us: int
    cwd: str | None = None
    env: Mapping[str, str] = NO_VARIABLES
    user: str = ""
    group: str = ""


class CommandAnswer(NamedTuple):
    """How a command ended. ok: None if it could not be run; exit: None if it was ended, negative for a signal; words: how
    it ended, with what it said last; took_ms: until it ended."""

    ok: bool | None
    words: str
    exit: int | None = None
    took_ms: float = 0.0


class CommandProber(Protocol):
    """Runs commands to their end. Many may run at the same time."""

    def ask(self, command: CommandRequest) -> "Future[CommandAnswer]":
        """A future with the result, done soon after the timeout at the latest, which ends the command with all that came
        out of it. It holds no exception."""
