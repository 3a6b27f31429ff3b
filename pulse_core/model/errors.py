"""One tree of errors; the type says what is wrong, the message what was asked and what would work."""

from collections.abc import Iterable, Sequence

from pulse_core.model.text import listed

SHOWN_NAMES = 12
MOST_NAMES = 1_000
"""Names among which a near one is looked for: each takes tens of microseconds."""


class PulseError(Exception):
    """A failure that a person can understand and repair; the command line prints its sentence and exits with its code."""

    exit_code = 1


class NotStartable(PulseError):
    """A program that this machine cannot start: it is not there, is no program, or may not be executed."""


class Refused(PulseError):
    """A draft that may not be recorded: wrong caller, wrong shape, or not allowed."""


class UnknownName(PulseError):
    """An unknown name, with the nearest known one."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"no {what} {name!r}{hint(name, known)}")


class Ambiguous(PulseError):
    """A shortened id that matches several."""

    def __init__(self, what: str, prefix: str, some: Iterable[str]) -> None:
        super().__init__(
            f"{prefix!r} begins the ids of several {what}s ({', '.join(some)}); write more of it"
        )


class Conflict(Refused):
    """The same event id was used before for another content."""


class LogUnavailable(PulseError):
    """The event log could not be written (disk full, read-only, failing device); nothing was recorded."""


class LogGone(LogUnavailable):
    """The event log was deleted or replaced under its writer, which can't find what it wrote any more."""


class Damaged(PulseError):
    """A store's content is not what was written; going on would hide a loss."""


class NewerFormat(PulseError):
    """The home was written by a newer Pulse than this one."""


class OlderFormat(PulseError):
    """The home was written by an older Pulse, and only the daemon may bring it up to date."""


class HomeBusy(PulseError):
    """Another process holds the home's lock."""

    def __init__(self, home: str, pid: int | None) -> None:
        who = f"process {pid}" if pid else "another process"
        super().__init__(
            f"{home} is held by {who}; stop it first (upulse daemon stop), or let it end if it is a command"
        )
        self.pid = pid


class NotAnswering(PulseError):
    """No daemon answers."""


class NoHome(PulseError):
    """There is no Pulse home at this path."""

    def __init__(self, home: str) -> None:
        super().__init__(f"no Pulse home at {home}; make one with: upulse init --home {home}")


class SettingsRefused(PulseError):
    """Settings that cannot be used; every fault at once, each with file, line and key."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


def describe_error(error: BaseException) -> str:
    """Describe an error: its message if it is a PulseError, with its type if it is a bug."""
    return str(error) if isinstance(error, PulseError) else f"{type(error).__name__}: {error}"


def hint(name: str, known: Iterable[str]) -> str:
    """The nearest known name as ` (did you mean 'x'?)`, or the names there are, or nothing."""
    from difflib import get_close_matches  # every child process imports this module, and few need it

    names = sorted(known)
    longer = [one for one in names if name and one.startswith(name)]
    if near := longer or get_close_matches(name, names[:MOST_NAMES], n=1, cutoff=0.6):
        return f" (did you mean {near[0]!r}?)"
    return f" (there are: {listed(names, SHOWN_NAMES)})" if names else ""
