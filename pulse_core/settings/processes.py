"""What to guard, how to recognise it, and how to bring it back."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pulse_core.model.backoff import Backoff
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.names import USAGE
from pulse_core.settings.groups import (
    NUMBER_AS_TEXT,
    AbsolutePath,
    AccountName,
    Duration,
    Group,
    Path,
    Regex,
    UnitName,
    is_host_port,
    size_number,
    text_check,
)
from pulse_core.settings.probes import HTTP_BODY, HTTP_STATUS, HealthUrl, ProbeKind, SocketPath, Statuses
from pulse_core.settings.secrets import Argv, Environment

UNLIMITED = -1
"""A limit that bounds nothing."""
RARELY_US = 3_600 * US_PER_SECOND
"""The longest wait between two restarts of a process whose budget is spent."""


Name = Annotated[
    str,
    text_check(
        re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}").fullmatch,
        "is no name; take 1 to 64 letters, digits, '.', '_' or '-', a letter or digit first",
    ),
]
Address = Annotated[
    str, text_check(is_host_port, "is no address; write host:port, as '127.0.0.1:8080' or '[::1]:8080'")
]
Umask = Annotated[
    str,
    text_check(
        re.compile(r"(0?[0-7]{3})?").fullmatch, "is no umask; write three octal digits in quotes, as '027'"
    ),
]


SHORTEST_US = 10_000
"""The first wait at the least: what can't be started would else be tried as fast as the machine goes, by a large budget."""


def limit_number(text: str) -> int:
    """The number that a limit stands for."""
    return UNLIMITED if text == "unlimited" else size_number(text)


def _is_limit(text: str) -> bool:
    try:
        return limit_number(text) < 2**63 - 1
    except ValueError:
        return False


Limit = Annotated[
    str,
    NUMBER_AS_TEXT,
    text_check(_is_limit, "is no limit; write a number, a size as '2G', or 'unlimited'"),
]
"""A bound that the kernel sets a process, soft and hard alike; empty: that of the daemon."""
MemoryBound = Annotated[
    str, NUMBER_AS_TEXT, text_check(_is_limit, "is no size; write a number, or a size as '2G'")
]
"""What the tree of a process may take; empty: any amount."""


class LimitSettings(Group):
    """Bounds that the kernel sets what `start` starts, each soft and hard alike; a number, a size as "2G", or "unlimited".

    Those not given are the daemon's own. More than the daemon's own hard limit, only root's daemon can give.
    """

    nofile: Limit = Field("", description="open files of each of its processes", examples=["65536"])
    nproc: Limit = Field("", description="processes and threads of its user", examples=["4096"])
    core: Limit = Field("", description="bytes of a core file", examples=["0"])
    memlock: Limit = Field(
        "", description="bytes that can be kept from being swapped", examples=["unlimited"]
    )
    as_: Limit = Field(
        "", alias="as", description="bytes of address space of each of its processes", examples=["8G"]
    )
    fsize: Limit = Field("", description="bytes of a file that it writes", examples=["1G"])
    cpu: Limit = Field("", description="seconds of CPU of each of its processes", examples=["3600"])
    stack: Limit = Field("", description="bytes of stack", examples=["16M"])

    @property
    def given(self) -> Mapping[str, int]:
        """The limits that are set, by their names."""
        written = self.model_dump(by_alias=True)
        return {name: limit_number(text) for name, text in written.items() if text}


class RestartSettings(Group):
    """How hard to try to bring a process back; the first restart of a process that was healthy is immediate."""

    max: int = Field(5, ge=0, le=1000, description="restarts within `within` before it counts as flapping")
    within: Duration = Field(600_000_000, gt=0, description="the budget's window; up for so long, it is new")
    backoff: Duration = Field(
        1_000_000, ge=0, description="wait before the second restart, at least 10ms; doubles after that"
    )
    backoff_max: Duration = Field(300_000_000, ge=0, description="longest wait before the budget is spent")
    healthy_after: Duration = Field(120_000_000, ge=0, description="uptime that resets the backoff")
    grace: Duration = Field(10_000_000, ge=0, description="time to come up before a start counts as failed")

    @property
    def pauses(self) -> Backoff[int]:
        """Microseconds between two restarts, as long as the budget is not spent."""
        return Backoff(max(self.backoff, SHORTEST_US), max(self.backoff_max, SHORTEST_US))

    @property
    def pauses_when_spent(self) -> Backoff[int]:
        """Microseconds between two restarts once the budget is spent."""
        return Backoff(max(self.backoff_max, US_PER_SECOND), RARELY_US)

    @model_validator(mode="after")
    def _bounds_agree(self) -> "RestartSettings":
        if self.backoff_max < self.backoff:
            raise ValueError("backoff_max is less than backoff; raise backoff_max or lower backoff")
        return self


class ProcessSettings(Group):
    """One `[[process]]`: a critical process.

    It is recognised by `pid_file`, `systemd_unit`, `match` or `tcp` (at most one), or else as the child that
    Pulse started; it is brought back by `start`, `command` or `systemd_unit`. That it serves is asked by `http`, `exec`
    or `unix` (at most one), or else by `tcp`.
    """

    name: Name = Field(description="its name everywhere", examples=["gateway"])
    start: Argv = Field(
        (),
        description="argv that Pulse starts as a process of its own session",
        examples=[["python3", "-m", "http.server", "18080"]],
    )
    command: Argv = Field(
        (),
        description="argv of a command that restarts it and returns",
        examples=[["/usr/local/bin/restart-gateway"]],
    )
    pid_file: Path | None = Field(
        None, description="file that holds its process id", examples=["/run/gateway.pid"]
    )
    systemd_unit: UnitName | None = Field(None, description="unit that runs it", examples=["gateway.service"])
    systemd_user: bool = Field(False, description="the unit belongs to the user's manager, not the system's")
    match: Regex | None = Field(
        None,
        description="regular expression searched in the first 4096 characters of the argv joined by spaces",
        examples=["http\\.server 18080"],
    )
    user: AccountName = Field(
        "",
        description="whom `start` and `exec` run as, which root's daemon alone can do, and whose processes `pid_file`,"
        " `match` and `tcp` find; empty: the daemon's own user",
        examples=["postgres"],
    )
    group: AccountName = Field(
        "",
        description="group that `start` runs as, and `exec` where there is a `user`, which root's daemon alone can do;"
        " empty: that of its user",
        examples=["www-data"],
    )
    umask: Umask = Field(
        "",
        description="octal permissions that files which it makes don't get; empty: the daemon's own",
        examples=["027"],
    )
    nice: int | None = Field(
        None,
        ge=-20,
        le=19,
        description="priority of what `start` starts, 19 the lowest; less than its own, only root's daemon can give",
        examples=[10],
    )
    limits: LimitSettings = Field(LimitSettings(), description="bounds that the kernel sets it")
    tcp: Address | None = Field(
        None, description="host:port that it listens on", examples=["127.0.0.1:18080"]
    )
    cwd: Path | None = Field(
        None, description="working directory of `start` and `command`", examples=["/srv/gateway"]
    )
    env: Environment = Field(
        default_factory=dict,
        repr=False,
        description="added to the environment of what is started",
        examples=[{"LANG": "C.UTF-8"}],
    )
    env_file: AbsolutePath | None = Field(
        None,
        description="file of such variables, as NAME=value, in at most 64 KiB, 1,000 lines and 100 blanks in a row;"
        " read at each start; `env` wins",
        examples=["/etc/gateway.env"],
    )
    depends_on: tuple[str, ...] = Field(
        (), description="names of processes that must be up first", examples=[["database"]]
    )
    autostart: bool = Field(
        True,
        description="it is started by itself; if not, only from `upulse process start` on, until a stop or a reboot",
    )
    kill: Literal["tree", "main"] = Field(
        "tree",
        description="what a stop ends, and a restart before it starts anew: all that came out of it, or it alone",
    )
    stop_signal: Literal["TERM", "INT", "QUIT", "HUP", "USR1", "USR2"] = Field(
        "TERM", description="signal that asks it to end, at a stop and before a restart of a live one"
    )
    stop_timeout: Duration = Field(
        10_000_000,
        gt=0,
        le=600_000_000,
        description="how long it has to end after that signal; then it is killed, with all that came out of it",
    )
    http: HealthUrl | None = Field(
        None,
        description="URL that it must answer, by an address; certificates are not checked, redirects not followed",
        examples=["http://127.0.0.1:18080/health"],
    )
    http_status: Statuses = HTTP_STATUS
    http_body: Regex | None = HTTP_BODY
    exec: Argv = Field(
        (), description="argv of a command that must exit with 0", examples=[["pg_isready", "-q"]]
    )
    unix: SocketPath | None = Field(
        None, description="socket that must take connections", examples=["/run/gateway.sock"]
    )
    every: Duration = Field(
        0,
        ge=0,
        le=86_400_000_000,
        description="time between two probes; 0: `watch.process_interval`, and 500ms after one that failed",
    )
    timeout: Duration = Field(
        2_000_000, gt=0, le=300_000_000, description="how long a probe may take as a whole"
    )
    evidence: int = Field(
        3, ge=1, le=1000, description="probes of a live process that must fail before it counts as dead"
    )
    evidence_of: int = Field(
        0, ge=0, le=1000, description="of how many probes so many must fail; 0: they must fail in a row"
    )
    start_period: Duration = Field(
        0, ge=0, description="time after its start in which probes that fail count for nothing"
    )
    restart: RestartSettings = Field(RestartSettings(), description="how hard to try")
    memory_max: MemoryBound = Field(
        "",
        description='bytes of memory that its tree may take, as "2G"; what its processes share counts once',
        examples=["2G"],
    )
    cpu_max: float = Field(
        0, ge=0, le=100_000, description="cores that its tree may use, as 1.5; 0: any number", examples=[1.5]
    )
    for_: Duration = Field(
        300_000_000, alias="for", ge=0, description="how long it must take more than that before it counts"
    )
    then: Literal["tell", "restart"] = Field(
        "tell", description="what follows: a notice, or a restart, and a notice if that did not help"
    )

    @model_validator(mode="after")
    def _can_be_found_and_restarted(self) -> "ProcessSettings":
        ways = [way for way in ("pid_file", "systemd_unit", "match", "tcp") if getattr(self, way) is not None]
        if len(ways) > 1:
            raise ValueError(f"{' and '.join(ways)} are two ways to recognise one process; keep one of them")
        means = [way for way in ("start", "command", "systemd_unit") if getattr(self, way)]
        if not means:
            raise ValueError(
                "nothing says how to start it; give start = [argv…], command = [argv…] or systemd_unit"
            )
        if len(means) > 1:
            raise ValueError(f"{' and '.join(means)} are two ways to start one process; keep one of them")
        if self.systemd_user and not self.systemd_unit:
            raise ValueError("systemd_user says whose the unit is, but there is no systemd_unit; give it too")
        if self.kill == "main" and self.systemd_unit:
            raise ValueError("what is ended of a unit, systemd decides; say it by KillMode= in the unit")
        if self.systemd_unit and (about := self._written("stop_signal", "stop_timeout")):
            raise ValueError(f"how a unit is ended, systemd decides; say {about} in the unit instead")
        if self.systemd_unit and self.env_file:
            raise ValueError(
                "a unit is started by systemd; say env_file by EnvironmentFile= in the unit instead"
            )
        if not self.start and (about := next(iter(self.attributes), "")):
            where = "the unit" if self.systemd_unit else "what `command` runs"
            raise ValueError(f"{about} is about what `start` starts, and there is none; say it in {where}")
        if self.command and not ways:
            raise ValueError(
                "a process restarted by `command` needs pid_file, match or tcp to be recognised by"
            )
        return self

    @model_validator(mode="after")
    def _probes_agree(self) -> "ProcessSettings":
        asked = [kind for kind in ("http", "exec", "unix") if getattr(self, kind)]
        if len(asked) > 1:
            raise ValueError(f"{' and '.join(asked)} are two ways to ask whether it serves; keep one of them")
        if not self.http and (about := self._written("http_status", "http_body")):
            raise ValueError(f"{about} says what a good answer is, but there is no http; give its URL too")
        if not self.probe and (about := self._written("every", "timeout", "start_period", "evidence_of")):
            raise ValueError(f"{about} is about probes, and there is none; give http, exec, unix or tcp too")
        if 0 < self.evidence_of < self.evidence:
            raise ValueError(
                f"evidence ({self.evidence}) is more than evidence_of ({self.evidence_of}); lower it or raise evidence_of"
            )
        return self

    @model_validator(mode="after")
    def _usage_agrees(self) -> "ProcessSettings":
        if self.memory_max == "unlimited" or (self.memory_max and limit_number(self.memory_max) == 0):
            raise ValueError("memory_max is no bound; write a size as '2G', or leave it out")
        if not self.memory_max and not self.cpu_max and (about := self._written("for_", "then")):
            about = about.rstrip("_")
            raise ValueError(
                f"{about} is about memory_max and cpu_max, and there is none; give one of them too"
            )
        return self

    @property
    def usage_conditions(self) -> tuple[str, str]:
        """The names of the conditions that its tree takes too much memory, and too much CPU."""
        return f"{USAGE}{self.name}:memory", f"{USAGE}{self.name}:cpu"

    @property
    def memory_bound(self) -> int:
        """Bytes that its tree may take; 0 for any number."""
        return limit_number(self.memory_max) if self.memory_max else 0

    def _written(self, *keys: str) -> str:
        """The first of these settings that has another value than its default; empty if none has."""
        fields = type(self).model_fields
        return next((key for key in keys if getattr(self, key) != fields[key].default), "")

    @property
    def attributes(self) -> Mapping[str, object]:
        """What `start` gives the process beside its user, as far as it is set: other values than the daemon has."""
        given = {"group": self.group, "umask": self.umask, "nice": self.nice, **self.limits.given}
        return {key: value for key, value in given.items() if value not in ("", None)}

    @property
    def probe(self) -> ProbeKind | None:
        """How it is asked whether it serves; None if being alive is enough."""
        if self.http:
            return "http"
        return "exec" if self.exec else "unix" if self.unix else "tcp" if self.tcp else None

    @property
    def probes(self) -> int:
        """How many of its last probes count."""
        return self.evidence_of or self.evidence

    @property
    def start_grace(self) -> int:
        """Microseconds that a start has to come up."""
        return max(self.restart.grace, self.start_period)
