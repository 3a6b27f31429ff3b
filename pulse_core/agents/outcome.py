"""What the end of a run means for its task. Pure."""

import signal

from pulse_core.agents.settings import GENERAL, AgentSettings
from pulse_core.agents.tools import RunAnswer
from pulse_core.model.backoff import Backoff
from pulse_core.settings.settings import Settings
from pulse_core.tasks.events import TaskFailed
from pulse_core.tasks.settings import SETTINGS as TASK_SETTINGS
from pulse_core.tasks.task import TaskState


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
    how = f"it exited with status {code}" if code > 0 else f"it was killed by {_signal_name(-code)}"
    return f"{how}: {answer.error}" if answer.error else how


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def failed_attempt(
    task: TaskState,
    agent: AgentSettings | None,
    error: str,
    settings: Settings,
    token: int,
    cost: float = 0.0,
) -> TaskFailed:
    """The failure of an attempt: tried again after a while, unless it was the last one before a person decides.

    cost: of all attempts together.
    """
    budget = GENERAL.of(settings).cost_per_task
    if budget and cost >= budget:
        return TaskFailed(token=token, error=f"{error}; its attempts cost {cost:.2f}, of at most {budget:g}")
    if agent is None or task.attempts >= TASK_SETTINGS.of(settings).attempts:
        return TaskFailed(token=token, error=error)
    longest = max(agent.retry, 24 * 3600 * 1_000_000)
    pause = Backoff(agent.retry, longest).after(max(1, task.attempts))
    return TaskFailed(token=token, error=error, retry_us=pause)
