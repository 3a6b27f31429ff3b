"""All of `config.toml` as one value."""

import hashlib
from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator
from pydantic.fields import FieldInfo

from pulse_core.model.durations import UNITS
from pulse_core.settings.cross_checks import disagreements
from pulse_core.settings.engine import EngineSettings, RollbackSettings
from pulse_core.settings.groups import AbsolutePath, AccountName, Duration, Group, context_check
from pulse_core.settings.logs import LogSettings
from pulse_core.settings.network import NetworkSettings
from pulse_core.settings.notify import NoticeRoute, NotifySettings
from pulse_core.settings.processes import ProcessSettings
from pulse_core.settings.resources import ResourcesSettings
from pulse_core.settings.secrets import IN_CLEAR
from pulse_core.settings.settings_group import NamedTables, SettingsGroup
from pulse_core.settings.telemetry import (
    AnchorSettings,
    HeartbeatSettings,
    MetricsSettings,
    SelfSettings,
)

GROUP_CHECK = "group_check"
"""In a validation's context: a function that raises ValueError for a group that this machine does not have."""


class DaemonSettings(Group):
    """`[daemon]`: the loops."""

    tick_ms: int = Field(
        15_000, ge=100, le=3_600_000, description="longest time between two ticks, milliseconds"
    )
    min_tick_ms: int = Field(
        50, ge=1, le=60_000, description="shortest time between two unhurried ticks, milliseconds"
    )
    executor_scan_interval_ms: int = Field(
        1_000, ge=50, le=3_600_000, description="safety-net scan for due effects, milliseconds"
    )
    concurrency: int = Field(
        32,
        ge=1,
        le=1024,
        description="effects of survival that may execute at the same time, and as many starts of dead processes; "
        "of what rules wish, and likewise of what people do, one and a half times as many, as many of one action, "
        "and one and a quarter times as many of the engine's own actions together",
    )
    stop_grace: Duration = Field(
        10_000_000,
        ge=0,
        description="how long a stop waits for running effects, and a promote for those of the executors that it replaces",
    )
    checkpoint_every: Duration = Field(60_000_000, gt=0, description="how often projections are checkpointed")
    verify_every: Duration = Field(
        UNITS["d"],
        ge=0,
        description="how often the whole log is read in the background; 0: only after each start",
    )

    @model_validator(mode="after")
    def _bounds_agree(self) -> "DaemonSettings":
        if self.min_tick_ms > self.tick_ms:
            raise ValueError(
                f"min_tick_ms ({self.min_tick_ms}) is more than tick_ms ({self.tick_ms}); lower it or raise tick_ms"
            )
        return self


class WatchSettings(Group):
    """`[watch]`: the built-in watchers."""

    process_interval: Duration = Field(
        5_000_000, ge=50_000, description="time between two looks at the processes"
    )
    system_interval: Duration = Field(
        5_000_000, ge=50_000, description="time between two samples of the system"
    )
    usage_interval: Duration = Field(
        10_000_000, ge=100_000, description="time between two samples of what the guarded processes take"
    )
    keep: Duration = Field(
        86_400_000_000,
        ge=3_600_000_000,
        description="how long samples and tick records stay in vitals.db (the last 1,000 that emitted effects: as minutes)",
    )
    keep_minutes: Duration = Field(
        30 * 86_400_000_000,
        ge=0,
        description="how long the minutes stay to which older samples are rolled up",
    )
    disks: tuple[AbsolutePath, ...] = Field(("/",), description="paths whose file systems are sampled")


class IntentSettings(Group):
    """`[intent]`: commanded stops."""

    expires: Duration = Field(86_400_000_000, gt=0, description="how long a stop holds if not said otherwise")


MOST_OF_RULES = 600


class BudgetSettings(Group):
    """`[budget]`: the blast radius."""

    actions_per_minute: int = Field(
        60,
        ge=0,
        le=1000,
        description="actions over all targets in a minute, as many starts of dead processes, and as many effects of rules;"
        " 0: no limit, for rules 600",
    )
    capability_actions_per_minute: int = Field(
        600, ge=0, le=1000, description="effects of capabilities, as those on tasks, in a minute; 0: no limit"
    )

    @property
    def of_rules(self) -> int:
        """Effects of rules in a minute: never without a limit, since each is recorded for ever and takes the loop's time."""
        return self.actions_per_minute or MOST_OF_RULES


class SocketSettings(Group):
    """`[socket]`: where and to whom the daemon answers."""

    directory: AbsolutePath | None = Field(
        None, description="directory of the socket, if not the home's run/", examples=["/run/pulse/main"]
    )
    group: Annotated[AccountName, context_check(GROUP_CHECK)] | None = Field(
        None, description="group whose members may do what an agent may", examples=["agents"]
    )


class RunCommandSettings(Group):
    """`[executors.run-command]`: the commands that an effect may run."""

    allow: tuple[AbsolutePath, ...] = Field(
        (),
        description="programs that may be run: named so, by their real path, or found in PATH",
        examples=[["/usr/local/bin/clean-up"]],
    )
    timeout: Duration = Field(
        300_000_000, gt=0, description="how long a command may run before its whole process tree is ended"
    )


class ExecutorsSettings(Group):
    """`[executors.*]`."""

    run_command: RunCommandSettings = Field(RunCommandSettings(), alias="run-command")


class Settings(Group):
    """Everything a person decides. Source: `config.toml` in the home.

    The groups of the core are written down here; those of capabilities are added by `extend`, and read by their own
    `SettingsGroup.of`, which knows their type.
    """

    extensions: ClassVar[tuple[SettingsGroup[Any], ...]] = ()

    daemon: DaemonSettings = DaemonSettings()
    watch: WatchSettings = WatchSettings()
    intent: IntentSettings = IntentSettings()
    budget: BudgetSettings = BudgetSettings()
    socket: SocketSettings = SocketSettings()
    executors: ExecutorsSettings = ExecutorsSettings()
    resources: ResourcesSettings = ResourcesSettings()
    network: NetworkSettings = NetworkSettings()
    engine: EngineSettings = EngineSettings()
    rollback: RollbackSettings = RollbackSettings()
    notify: NotifySettings = NotifySettings()
    metrics: MetricsSettings = MetricsSettings()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    anchor: AnchorSettings = AnchorSettings()
    self_: SelfSettings = Field(SelfSettings(), alias="self")
    process: tuple[ProcessSettings, ...] = ()
    log: tuple[LogSettings, ...] = ()
    notify_route: tuple[NoticeRoute, ...] = ()

    @property
    def notice_urls(self) -> tuple[str, ...]:
        """Every address for notices, each once."""
        return tuple(
            dict.fromkeys((*self.notify.urls, *(url for one in self.notify_route for url in one.urls)))
        )

    def notice_urls_for(self, severity: str, topic: str) -> tuple[str, ...]:
        """The addresses of a notice, each once."""
        routed = (url for one in self.notify_route if one.takes(severity, topic) for url in one.urls)
        return tuple(dict.fromkeys((*self.notify.urls, *routed)))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the settings in canonical JSON, hex: what a tick record names."""
        text = self.model_dump_json(by_alias=True, context=dict(IN_CLEAR))
        return hashlib.sha256(text.encode()).hexdigest()

    @model_validator(mode="after")
    def _tables_agree(self) -> "Settings":
        faults = disagreements(self.process)
        for group in self.extensions:
            faults += group.agree(group.of(self), NamedTables(self.process, self.log))
        if faults:
            raise ValueError("\n".join(fault.text for fault in faults))
        return self

    @classmethod
    def extend(cls, groups: Iterable[SettingsGroup[Any]]) -> None:
        """Make groups that are not the core's own fields of the root; done once, by `pulse_core.composition`."""
        cls.extensions = tuple(groups)
        for group in cls.extensions:
            if group.name in cls.__pydantic_fields__:
                raise TypeError(f"the settings [{group.name}] are there already")
            field = FieldInfo.from_annotated_attribute(group.type, group.default)
            cls.__pydantic_fields__[group.name] = field
        if cls.__pydantic_complete__:
            cls.model_rebuild(force=True)
