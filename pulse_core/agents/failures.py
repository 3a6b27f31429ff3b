"""Why attempts at a task fail, and what follows from each kind of failure. Pure."""

import re
from collections.abc import Mapping
from enum import StrEnum
from os import EX_NOPERM
from typing import NamedTuple

from pulse_core.agents.settings import GENERAL, AgentSettings
from pulse_core.agents.tools import TOOLS, RunAnswer
from pulse_core.model.backoff import Backoff
from pulse_core.model.durations import UNITS
from pulse_core.model.text import signal_name
from pulse_core.settings.settings import Settings
from pulse_core.tasks.events import TaskFailed
from pulse_core.tasks.settings import SETTINGS as TASK_SETTINGS
from pulse_core.tasks.task import TaskState

SHORTAGE = Backoff(UNITS["m"], UNITS["h"])
"""How long a task waits where the machine was short of something."""


class FailureKind(StrEnum):
    """Why an attempt failed."""

    SHORTAGE = "the machine was short of something"
    UNBEGUN = "its project's repository is to blame, or Pulse"
    LOGIN = "the agent is not logged in"
    REFUSAL = "the agent refuses the task"
    GARBAGE = "the output has no result"
    SPENT = "it was held, or cost too much"
    BOUND = "it was stopped: it took too long, or printed or used too much"
    CRASH = "its program was killed, or exited with an error"
    FAILURE = "it says that it failed"


class Consequence(NamedTuple):
    """What follows. attempts: how many are made in all, if the settings don't allow fewer, before a person decides; 0: as
    many as they allow; blameless: it counts neither as attempt nor as failure; unbegun: not as failure of the agent;
    sets_aside: the agent gets nothing until a person has done something."""

    attempts: int = 0
    blameless: bool = False
    unbegun: bool = False
    sets_aside: bool = False


CONSEQUENCES: Mapping[FailureKind, Consequence] = {
    FailureKind.SHORTAGE: Consequence(blameless=True),
    FailureKind.UNBEGUN: Consequence(unbegun=True),
    FailureKind.LOGIN: Consequence(blameless=True, sets_aside=True),
    FailureKind.REFUSAL: Consequence(attempts=1),
    FailureKind.GARBAGE: Consequence(attempts=2),
    FailureKind.SPENT: Consequence(attempts=1),
    FailureKind.BOUND: Consequence(),
    FailureKind.CRASH: Consequence(),
    FailureKind.FAILURE: Consequence(),
}
_TOLD = {
    FailureKind.LOGIN: re.compile(
        r"(?i)not logged in|please run \W{0,4}(?:\w{1,20} )?/?login\b|invalid api key"
        r"|authentication (required|_?error)|401 unauthorized|no inference provider"
    ),
    FailureKind.REFUSAL: re.compile(r"(?i)\busage policy\b|\bcontent policy\b|^stop_reason refusal"),
}
"""By what an error shows its kind, of programs that one logs in to."""


def kind_of(answer: RunAnswer, code: int | None, stop: str, agent: AgentSettings | None) -> FailureKind:
    """Why a run failed. A program of which Pulse does not know what it prints says by EX_NOPERM that it is not logged in."""
    if stop:
        return FailureKind.BOUND
    if agent and not TOOLS[agent.kind].login and code == EX_NOPERM:
        return FailureKind.LOGIN
    for kind, words in _TOLD.items():
        if agent and TOOLS[agent.kind].login and words.search(answer.error):
            return kind
    if code:
        return FailureKind.CRASH
    return FailureKind.GARBAGE if answer.garbled else FailureKind.FAILURE


def failure_of(answer: RunAnswer, code: int | None, stop: str) -> str:
    """Why a run failed; empty if it did its task. code: its exit code, None if nobody knows; stop: why it was stopped."""
    if stop:
        return stop
    if answer.done is False and (code or 0) >= 0:
        return answer.error or "it says that it failed"
    if code is None:
        return "" if answer.done else "it ended while Pulse was not there to see how"
    if code == 0:
        return ""
    how = f"it exited with status {code}" if code > 0 else f"it was killed by {signal_name(-code)}"
    return f"{how}: {answer.error}" if answer.error else how


def failed_attempt(
    task: TaskState,
    agent: AgentSettings | None,
    error: str,
    kind: FailureKind,
    settings: Settings,
    token: int,
    cost: float = 0.0,
) -> TaskFailed:
    """The failure of an attempt: tried again after a while, unless it was the last one before a person decides.

    cost: of all attempts together. Where the machine was short of something it is tried again more and more rarely: what a
    repository prints may say so falsely, and what an agent leaves may fill the disk.
    """
    general, follows = GENERAL.of(settings), CONSEQUENCES[kind]
    budget, same = general.cost_per_task, 0 if follows.unbegun else task.failures_with(error)
    if budget and (cost >= budget or (agent and cost + agent.cost_per_run > budget)):
        return TaskFailed(token=token, error=f"{error}; its attempts cost {cost:.2f}, of at most {budget:g}")
    if follows.blameless:
        pause = 0 if follows.sets_aside else SHORTAGE.after(task.shortages + 1)
        return TaskFailed(token=token, error=error, retry_us=pause, blameless=True)
    most, retry = TASK_SETTINGS.of(settings).attempts, None
    most = min(most, follows.attempts or most)
    if agent and task.attempts < most and same < general.same_failures:
        retry = Backoff(agent.retry, max(agent.retry, UNITS["d"])).after(max(1, task.attempts))
    return TaskFailed(token=token, error=error, retry_us=retry, unbegun=follows.unbegun)
