"""Metrics, the heartbeat and the anchor, which others read; and the bounds of Pulse's own usage."""

from typing import Annotated

from pydantic import Field

from pulse_core.model.durations import UNITS
from pulse_core.settings.groups import (
    AbsolutePath,
    Duration,
    Group,
    HttpUrl,
    context_check,
    is_host_port,
    text_check,
)
from pulse_core.settings.secrets import Argv, BeatUrl

SECOND = UNITS["s"]

ANCHOR_CHECK = "anchor_check"
"""In a validation's context: a function that raises ValueError for a file that vouches for nothing."""


Address = Annotated[
    str,
    text_check(
        lambda text: is_host_port(text, lowest=0), "is no address; write host:port, as '127.0.0.1:9464'"
    ),
]
Textfile = Annotated[
    AbsolutePath,
    text_check(
        lambda text: text.endswith(".prom") and not text.endswith("/.prom"),
        "does not end with '.prom'; the collector reads no other file, and this one is replaced",
    ),
]


class MetricsSettings(Group):
    """`[metrics]`: numbers for Prometheus, served by a process of their own."""

    listen: Address | None = Field(
        None, description="address that serves /metrics", examples=["127.0.0.1:9464"]
    )
    textfile: Textfile | None = Field(
        None,
        description="file that is written for node_exporter's textfile collector",
        examples=["/var/lib/node_exporter/pulse.prom"],
    )
    every: Duration = Field(15 * SECOND, ge=SECOND, description="how often the file is written")
    otlp: HttpUrl | None = Field(
        None,
        description="OpenTelemetry collector that gets ticks and effects as traces, over OTLP/HTTP",
        examples=["http://127.0.0.1:4318/v1/traces"],
    )


class HeartbeatSettings(Group):
    """`[heartbeat]`: a sign of life outwards; whoever gets it can tell when it stays away."""

    url: BeatUrl | None = Field(
        None,
        repr=False,
        description="URL that is fetched while the loops turn, or its environment variable",
        examples=["env:PULSE_HEARTBEAT_URL"],
    )
    every: Duration = Field(60 * SECOND, ge=SECOND, description="how often")


class AnchorSettings(Group):
    """`[anchor]`: the head of the log, written down where whoever forges the home can't take it back.

    `upulse verify` compares the log with what it can read of that: the file and the journal.
    """

    file: Annotated[AbsolutePath, context_check(ANCHOR_CHECK)] | None = Field(
        None,
        description="file outside of the home that gets a line each time",
        examples=["/var/log/pulse-anchor"],
    )
    journal: bool = Field(False, description="a line in the journal, from `pulse-anchor`")
    notice: bool = Field(False, description="a message to the addresses of `[notify] urls`")
    command: Argv = Field(
        (),
        description="argv of a program that is given the line in the variable PULSE_ANCHOR",
        examples=[["/usr/local/bin/keep-anchor"]],
    )
    every: Duration = Field(10 * UNITS["m"], ge=SECOND, description="how often, if the log has grown")


class SelfSettings(Group):
    """`[self]`: what Pulse allows itself; over it, it sheds work in a stated order."""

    cpu: float = Field(0.25, gt=0, le=64, description="share of one core, over a minute")
    memory_mb: int = Field(256, ge=32, description="resident memory, MiB")
    late_ms: int = Field(500, ge=1, description="lateness of the event loop, milliseconds")
    disk_mb: int = Field(
        2_048, ge=16, description="size of vitals.db and logs/ together, MiB; over it the oldest go"
    )
