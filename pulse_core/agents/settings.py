"""Which agents there are, what each may do and use, and when one is set aside."""

from collections.abc import Mapping
from pathlib import Path as Folder
from typing import Literal

from pydantic import Field, model_validator

from pulse_core.model.durations import UNITS
from pulse_core.model.errors import UnknownName
from pulse_core.settings.cross_checks import repeated_names
from pulse_core.settings.groups import AccountName, Duration, Group, Path
from pulse_core.settings.secrets import Argv, Environment
from pulse_core.settings.settings import Settings
from pulse_core.settings.settings_group import SettingsGroup
from pulse_core.tasks.settings import TaskWorker

MINUTE, HOUR, MIB = UNITS["m"], UNITS["h"], 1 << 20


class AgentSettings(TaskWorker):
    """One `[[agent]]`: a program that does tasks.

    Its kind says how it is called and how its answer is read. Only one of kind `command` is given its whole `command`.
    """

    kind: Literal["command", "claude", "codex", "cursor", "hermes"] = Field(
        "command", description="which program it is", examples=["claude"]
    )
    command: Argv = Field(
        (),
        description="argv of one of kind `command`, and of others the program in its place; {prompt}, {prompt_file},"
        " {workspace}, {model}, {task} and {title} are filled in",
        examples=[["/usr/local/bin/agent", "--dir", "{workspace}"]],
    )
    args: Argv = Field((), description="further arguments", examples=[["--max-turns", "40"]])
    model: str = Field("", max_length=200, description="its model; empty: its own choice", examples=["opus"])
    prompt: Literal["stdin", "file", "environment", "argument"] | None = Field(
        None,
        description="how it is told what to do: on its stdin, by the path in {prompt_file} and PULSE_PROMPT_FILE, by"
        " PULSE_PROMPT, or by {prompt} in `command`; empty: as its kind has it, for `command` on stdin",
        examples=["file"],
    )
    concurrency: int = Field(1, ge=1, le=100, description="tasks that it does at the same time")
    timeout: Duration = Field(HOUR, ge=UNITS["s"], le=UNITS["d"], description="how long one run may take")
    silence: Duration = Field(15 * MINUTE, ge=0, description="how long a run may print nothing; 0: for ever")
    same_turns: int = Field(
        20, ge=0, description="turns in a row that a run may take without saying anything new; 0: any number"
    )
    output: int = Field(64 * MIB, ge=1 << 10, le=1 << 34, description="bytes that one run may print")
    memory: int = Field(0, ge=0, description="bytes of memory that a run may have together; 0: any number")
    processes: int = Field(0, ge=0, le=1 << 20, description="processes and threads of a run; 0: any number")
    cpu_weight: int = Field(0, ge=0, le=10_000, description="share of the CPU against 100 of others; 0: 100")
    user: AccountName = Field(
        "",
        description="whom its program runs as, which root's daemon alone can do; empty: the daemon's own user",
        examples=["agents"],
    )
    turns: int = Field(0, ge=0, description="messages and steps that one run may take; 0: any number")
    tokens: int = Field(0, ge=0, description="tokens that one run may take; 0: any number")
    times_usual: float = Field(
        10.0,
        ge=0,
        description="how many times the turns of its usual run, or its usual tokens or cost a minute, one may take; 0: any",
    )
    rate_over: Duration = Field(
        5 * MINUTE, ge=MINUTE, le=HOUR, description="least time over which tokens and cost a minute are taken"
    )
    hold: Duration = Field(
        10 * MINUTE,
        ge=0,
        le=UNITS["d"],
        description="how long a run that gets nowhere or takes too much is held, for a person to have it go on, until it is"
        " stopped",
    )
    cost_per_run: float = Field(
        0.0, ge=0, description="what one run may cost, and is set aside for it in the budgets; 0: any amount"
    )
    cost_per_day: float = Field(0.0, ge=0, description="what its runs may cost in 24 hours; 0: any amount")
    lease: Duration = Field(
        5 * MINUTE, ge=15 * UNITS["s"], le=UNITS["d"], description="how long its claim holds if Pulse is gone"
    )
    retry: Duration = Field(
        MINUTE, ge=0, le=UNITS["d"], description="wait after a failure; doubles each time"
    )
    soft: Duration = Field(
        10 * UNITS["s"], ge=0, le=MINUTE, description="time between SIGTERM and SIGKILL when a run is stopped"
    )
    env: Environment = Field(
        default_factory=dict, repr=False, description="its environment, too", examples=[{"LANG": "C.UTF-8"}]
    )
    pass_env: tuple[str, ...] = Field(
        ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "XDG_CONFIG_HOME", "SSL_CERT_FILE"),
        description="variables of the daemon's environment that it gets; no others",
        examples=[["PATH", "HOME", "ANTHROPIC_API_KEY"]],
    )

    @model_validator(mode="after")
    def _has_command(self) -> "AgentSettings":
        if self.kind == "command" and not self.command:
            raise ValueError("an agent of kind 'command' needs a command")
        if 0 < self.cost_per_day < self.cost_per_run:
            raise ValueError("cost_per_run is more than cost_per_day, so it would never begin anything")
        if self.user and (self.prompt == "file" or "{prompt_file}" in "".join((*self.command, *self.args))):
            raise ValueError("an agent with a user can't read files of the home; give it its prompt on stdin")
        return self


class AgentsSettings(Group):
    """`[agents]`: how tasks are assigned, and when an agent is set aside."""

    assign: bool = Field(True, description="Pulse assigns ready tasks; else only people do")
    failures: int = Field(3, ge=1, le=1000, description="failures in a row that set an agent aside")
    pause: Duration = Field(
        10 * MINUTE, ge=UNITS["s"], description="how long it is set aside first; doubles with each failure"
    )
    pause_max: Duration = Field(6 * HOUR, ge=UNITS["s"], description="longest time that it is set aside")
    aging: Duration = Field(HOUR, ge=0, description="waiting time that is worth a step of priority; 0: none")
    same_failures: int = Field(
        3, ge=1, le=100, description="failures of a task in a row with the same error until a person decides"
    )
    cost_per_task: float = Field(
        0.0, ge=0, description="what attempts at a task may cost until a person decides; 0: any amount"
    )
    cost_per_day: float = Field(
        0.0, ge=0, description="what the runs of all agents may cost together within 24 hours; 0: any amount"
    )
    orphans: Literal["tell", "end"] = Field(
        "tell", description="what becomes of processes that a run has left behind: they are told, or ended"
    )
    orphan_age: Duration = Field(
        10 * MINUTE, ge=MINUTE, description="how old they must be, with neither a terminal nor their parent"
    )
    keep_output: int = Field(
        64 << 10,
        ge=0,
        le=MIB,
        description="bytes from the end of each run's output that are kept for ever; 0: none",
    )
    workspaces: Path | None = Field(
        None,
        description="folder of the tasks' folders; else `workspaces` in the home",
        examples=["/srv/agents"],
    )


AGENTS: SettingsGroup[tuple[AgentSettings, ...]] = SettingsGroup(
    "agent",
    tuple[AgentSettings, ...],
    (),
    lambda agents, processes: repeated_names("agent", [agent.name for agent in agents]),
    {"name": None},
)
GENERAL: SettingsGroup[AgentsSettings] = SettingsGroup("agents", AgentsSettings, AgentsSettings())


def agents_of(settings: Settings) -> Mapping[str, AgentSettings]:
    """The agents by their names."""
    return {agent.name: agent for agent in AGENTS.of(settings)}


def known_agent(name: str, settings: Settings) -> AgentSettings:
    """The agent of this name; raises UnknownName."""
    if agent := agents_of(settings).get(name):
        return agent
    raise UnknownName("[[agent]]", name, agents_of(settings))


def workspaces_in(home: Folder, settings: Settings) -> Folder:
    """Where the folders of tasks are made."""
    return Folder(GENERAL.of(settings).workspaces or home / "workspaces")
