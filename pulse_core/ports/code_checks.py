"""What tools find in the files of an engine, before it may be promoted."""

from typing import Protocol

from pulse_core.model.errors import PulseError


class GateFailed(PulseError):
    """A gate said no; nothing was changed."""


class GateSkipped(Exception):
    """Raised by a gate that cannot look; the message says why, and it is recorded with the promote."""


class CodeChecks(Protocol):
    """Looks at the files of a revision, and changes nothing; whatever they do to the tools, they do to nothing else.

    Each check takes the revision's folder and says in a sentence what it found. Raises GateFailed, or GateSkipped.
    """

    def compiles(self, path: str) -> str:
        """Every file is Python."""
        ...

    def types(self, path: str) -> str:
        """The types are sound, as strictly as Pulse ships it, whatever the files say of that."""
        ...

    def tests(self, path: str) -> str:
        """Its own tests pass, and at least one of them was run."""
        ...
