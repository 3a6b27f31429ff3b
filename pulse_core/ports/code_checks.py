"""Checks of an engine's files by tools, before a promote."""

from typing import Protocol

from pulse_core.model.errors import PulseError


class GateFailed(PulseError):
    """A gate failed; nothing was changed."""


class GateSkipped(Exception):
    """Raised by a gate that cannot run; the message says why, and is recorded with the promote."""


class CodeChecks(Protocol):
    """Checks the files of a revision and changes nothing; what the files do while tools run is sandboxed.

    Each check takes the revision's folder and returns the result as a sentence. Raises GateFailed, or GateSkipped.
    """

    def compiles(self, path: str) -> str:
        """Every file is Python."""

    def types(self, path: str) -> str:
        """The types are sound, as strictly as Pulse ships it, whatever the files say of that."""

    def tests(self, path: str) -> str:
        """Its own tests pass, and at least one of them was run."""
