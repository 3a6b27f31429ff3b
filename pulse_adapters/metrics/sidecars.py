"""Processes beside the daemon: one serves metrics, one sends heartbeats.

They follow the settings in force: started, changed and ended with them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

from pulse_adapters.workers.conversation import Conversation, conversation
from pulse_adapters.workers.messages import cut_to
from pulse_adapters.workers.worker import Program, module_program
from pulse_core.daemon import CurrentSettings, Service
from pulse_core.daemon.services import SettingsService
from pulse_core.model.backoff import Backoff, Restarts
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.settings import HeartbeatSettings, MetricsSettings

Failed = Callable[[str, str], None]
FAREWELL_S = 2.0
"""How long the metrics process has for its last page, and its last traces."""
BACKOFF, WELL_S = Backoff(1.0, 300.0), 60.0
"""A child that ended is started again after a second, then less and less often; one that lived a minute was well."""

FIRST_S, ANSWER_S, MARGIN_S = 1.0, 10.0, 5.0
"""A sign of life comes soon after the start; it may take so long, and then its child is given up."""


class SidecarProblem(NamedTuple):
    """A problem of such a process; empty if all is well."""

    why: Annotated[str, cut_to(2_000)]


def sidecars(
    home: Path,
    current_settings: CurrentSettings,
    is_turning: Callable[[float], Awaitable[bool]],
    failed: Failed,
) -> Mapping[str, Service]:
    """The services that supervise them. is_turning: whether the daemon's loops made progress within so many seconds."""

    def metrics(wanted: MetricsSettings) -> Awaitable[None]:
        return supervise_metrics(home, wanted, failed)

    def heartbeat(wanted: HeartbeatSettings) -> Awaitable[None]:
        return Heartbeat(wanted, is_turning, failed).run()

    return {
        "metrics": SettingsService(lambda: current_settings().metrics, metrics),
        "heartbeat outwards": SettingsService(lambda: current_settings().heartbeat, heartbeat),
    }


def is_wanted(metrics: MetricsSettings) -> bool:
    """Whether there is anything for the metrics process to do."""
    return bool(metrics.listen or metrics.textfile or metrics.otlp)


def metrics_program(home: Path, metrics: MetricsSettings) -> Program:
    """The metrics process."""
    every = str(metrics.every / US_PER_SECOND)
    chosen = {"--listen": metrics.listen, "--textfile": metrics.textfile, "--otlp": metrics.otlp}
    words = (word for name, value in chosen.items() if value for word in (name, value))
    return module_program("upulse_cli.metrics_process", "--home", str(home), "--every", every, *words)


async def supervise_metrics(home: Path, metrics: MetricsSettings, failed: Failed) -> None:
    """Supervise the metrics process for ever, and restart it when it ends. Returns if there is nothing to do."""
    loop, restarts = asyncio.get_running_loop(), Restarts(BACKOFF, WELL_S)
    while is_wanted(metrics):
        restarts.started(loop.time())
        end = await run_metrics(metrics_program(home, metrics), failed)
        failed("metrics", f"its process {end}; it is started again")
        await asyncio.sleep(restarts.ended(loop.time()))


async def run_metrics(program: Program, failed: Failed) -> str:
    """Run a child and report its problems until it ends; returns how it ended, with its last output."""
    try:
        async with conversation(program, SidecarProblem, farewell=FAREWELL_S) as child:
            while complaint := await child.next():
                failed("metrics", complaint.why)
            return await child.end()
    except OSError as error:
        return f"cannot be started ({error.strerror})"


class Heartbeat:
    """Sends heartbeats, each only if the daemon's loops made progress. A failure is reported once, until it is over."""

    def __init__(
        self, heartbeat: HeartbeatSettings, is_turning: Callable[[float], Awaitable[bool]], failed: Failed
    ) -> None:
        self._heartbeat, self._is_turning, self._failed = heartbeat, is_turning, failed
        self._every = heartbeat.every / US_PER_SECOND
        self._said = ""

    async def run(self) -> None:
        """Send heartbeats for ever, if the settings ask for them."""
        if self._heartbeat.url is None:
            return
        wait = min(FIRST_S, self._every)
        while True:
            try:
                async with conversation(
                    module_program("pulse_adapters.metrics.heartbeat"), SidecarProblem
                ) as child:
                    wait = await self._life(child, wait)
            except OSError as error:
                self._say(f"the process that sends it cannot be started ({error.strerror})")
                wait = self._every
                await asyncio.sleep(wait)

    async def _life(self, child: Conversation[SidecarProblem], wait: float) -> float:
        """Send heartbeats until the child fails; returns the seconds until the next one is due."""
        loop = asyncio.get_running_loop()
        while True:
            turning = await self._is_turning(wait)
            began = loop.time()
            why = await self._sent(child) if turning else "the loops do not turn, so none is sent"
            wait = max(FIRST_S, self._every - (loop.time() - began))
            if why is None:
                return wait
            self._say(why)

    async def _sent(self, child: Conversation[SidecarProblem]) -> str | None:
        """Send one; returns why it did not arrive, or empty; None if the child has failed."""
        limit = min(ANSWER_S, self._every)
        child.tell({"url": self._heartbeat.url, "seconds": limit})
        ended = "died"
        try:
            async with asyncio.timeout(limit + MARGIN_S):
                if answer := await child.next():
                    return f"it could not be sent: {answer.why}" if answer.why else ""
        except TimeoutError:
            ended = "hung"
        self._say(f"the process that sends it {ended}; it is started again")
        return None

    def _say(self, why: str) -> None:
        if why and not self._said:
            self._failed("heartbeat", why)
        self._said = why
