"""Probes of guarded processes: whether one that is alive serves."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from asyncio import Future

    from pulse_core.ports.host import ProcessId
    from pulse_core.settings.processes import ProcessSettings


class HealthAnswer(NamedTuple):
    """The answer of one probe. ok: None if it says nothing about the process, as it could not be sent; detail: words;

    holder: who else holds its port, in words, if somebody does.
    """

    ok: bool | None
    detail: str = ""
    holder: str = ""


class HealthProber(Protocol):
    """Asks processes whether they serve, in the way that their settings name. Many may be asked at the same time."""

    def ask(self, process: "ProcessSettings", found: "ProcessId | None") -> "Future[HealthAnswer]":
        """A future with the answer, done soon after the probe's timeout at the latest; it holds no exception.

        found: the process that must be the one that answers; None if that is not known. Of a process that Pulse itself
        starts it is known while it lives: else nothing is asked, and told who holds its port.
        """
