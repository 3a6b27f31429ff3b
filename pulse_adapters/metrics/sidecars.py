"""What is told outside beside the daemon's work: a process serves metrics, and heartbeats are sent.

Both follow the settings in force: started, changed and ended with them.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

from pulse_adapters.workers.conversation import conversation
from pulse_adapters.workers.message_types import CutTo
from pulse_adapters.workers.worker import Program, module_program
from pulse_core.daemon import CurrentSettings, Service
from pulse_core.daemon.services import SettingsService
from pulse_core.model.backoff import Backoff, Restarts
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.ports.prober import Prober, ProbeRequest
from pulse_core.settings.groups import is_http_url
from pulse_core.settings.telemetry import HeartbeatSettings, MetricsSettings

Failed = Callable[[str, str], None]
IsTurning = Callable[[float], Awaitable[bool]]
FAREWELL_S = 2.0
"""How long the metrics process has for its last page, and its last traces."""
BACKOFF, WELL_S = Backoff(1.0, 300.0), 60.0
"""A child that ended is started again after a second, then less and less often; one that lived a minute was well."""

FIRST_S, ANSWER_S = 1.0, 10.0
"""The first heartbeat comes soon after the start; it may take so long."""


class SidecarProblem(NamedTuple):
    """A problem of the metrics process."""

    why: Annotated[str, CutTo(2_000)]


def sidecars(
    home: Path,
    current_settings: CurrentSettings,
    prober: Prober,
    is_turning: IsTurning,
    failed: Failed,
) -> Mapping[str, Service]:
    """The services that do it. is_turning: whether the daemon's loops made progress within so many seconds."""
    return {
        "metrics": SettingsService(
            lambda: current_settings().metrics, lambda wanted: supervise_metrics(home, wanted, failed)
        ),
        "heartbeat outwards": SettingsService(
            lambda: current_settings().heartbeat,
            lambda wanted: Heartbeat(wanted, prober, is_turning, failed).run(),
        ),
    }


def metrics_program(home: Path, metrics: MetricsSettings) -> Program:
    """The metrics process."""
    every = str(metrics.every / US_PER_SECOND)
    chosen = {"--listen": metrics.listen, "--textfile": metrics.textfile, "--otlp": metrics.otlp}
    words = (word for name, value in chosen.items() if value for word in (name, value))
    return module_program("upulse_cli.metrics_process", "--home", str(home), "--every", every, *words)


async def supervise_metrics(home: Path, metrics: MetricsSettings, failed: Failed) -> None:
    """Supervise the metrics process for ever, and restart it when it ends. Returns if there is nothing to do."""
    loop, restarts = asyncio.get_running_loop(), Restarts(BACKOFF, WELL_S)
    while metrics.listen or metrics.textfile or metrics.otlp:
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


@dataclass(frozen=True)
class Heartbeat:
    """Sends heartbeats, each only if the daemon's loops made progress. A failure is reported once, until it is over."""

    settings: HeartbeatSettings
    prober: Prober
    is_turning: IsTurning
    failed: Failed

    async def run(self) -> None:
        """Send heartbeats for ever, if the settings ask for them."""
        if self.settings.url is None:
            return
        every = self.settings.every / US_PER_SECOND
        loop, wait, said = asyncio.get_running_loop(), min(FIRST_S, every), ""
        while True:
            turning = await self.is_turning(wait)
            began = loop.time()
            why = await self._send(self.settings.url) if turning else "the loops do not turn, so none is sent"
            wait = max(FIRST_S, every - (loop.time() - began))
            if why and not said:
                self.failed("heartbeat", why)
            said = why

    async def _send(self, url: str) -> str:
        """Send one; returns why it did not arrive, without the URL, which may hold a secret, or empty."""
        name = url.removeprefix("env:")
        if name != url and not (url := os.environ.get(name, "")):
            return f"the environment variable {name} of [heartbeat] url is not set"
        if not is_http_url(url):
            return f"what {name} holds is no http or https URL"
        timeout_us = min(round(ANSWER_S * US_PER_SECOND), self.settings.every)
        answer = await self.prober.ask(ProbeRequest("http", url, timeout_us, follows=True))
        if answer.trouble:
            return f"it could not be sent: {answer.detail}"
        if answer.status is None or not 200 <= answer.status < 300:
            return f"it could not be sent: it was answered with {answer.status}"
        return ""
