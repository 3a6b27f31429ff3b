"""When a run is held or ended before its time, and how far it went. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from pulse_core.agents.projection import AgentRuns, Run
from pulse_core.agents.settings import AgentSettings
from pulse_core.model.durations import UNITS, duration_text
from pulse_core.model.moment import Moment
from pulse_core.model.text import count, format_size
from pulse_core.tasks.admission import described
from pulse_core.tasks.task import TaskState


class RunSample(NamedTuple):
    """What was seen of a run: bytes that it has printed, microseconds since it last did, the turns and tokens that it shows,
    how many of its last turns said nothing new, the memory of its processes, the time that they have computed, microseconds,
    and the pid of the program."""

    output: int = 0
    quiet_us: int = 0
    turns: int = 0
    tokens: int = 0
    same_turns: int = 0
    memory: int = 0
    cpu_us: int = 0
    pid: int = 0

    @classmethod
    def of(cls, data: object) -> "RunSample":
        """From a watcher's sample; zeros for what is missing."""
        known = data if isinstance(data, Mapping) else {}
        return cls(**{name: known[name] for name in cls._fields if isinstance(known.get(name), int)})


def reason_to_stop(
    run: Run, task: TaskState | None, agent: AgentSettings | None, sample: RunSample, now: Moment
) -> str:
    """Why the run is to end; empty if it may go on."""
    if task is None or task.token != run.token:
        return f"its claim {run.token} is over: the task {f'is {described(task)}' if task else 'has ended'}"
    if agent is None:
        return f"there is no [[agent]] {run.agent!r} any more"
    if now.since(run.moment) >= agent.timeout:
        return f"it took longer than {duration_text(agent.timeout)}"
    if run.paused and now.since(run.paused) >= agent.hold:
        return f"{run.held}, and nobody has had it go on"
    if agent.memory and sample.memory > agent.memory:
        return f"its processes had {format_size(sample.memory)} of memory, of at most {format_size(agent.memory)}"
    return excess_output(agent, sample)


def reason_to_pause(
    run: Run, agent: AgentSettings | None, sample: RunSample, runs: AgentRuns, now: Moment
) -> str:
    """Why the run is to be held for a person; empty if it may go on."""
    if agent is None or run.held:
        return ""
    for what, taken, most in (("turns", sample.turns, agent.turns), ("tokens", sample.tokens, agent.tokens)):
        if most and taken > most:
            return f"it took {taken:,} {what}, of at most {most:,}"
    if agent.silence and sample.quiet_us >= agent.silence:
        return f"it printed nothing for {duration_text(agent.silence)}"
    if agent.same_turns and sample.same_turns >= agent.same_turns:
        return f"its last {count(sample.same_turns, 'turn')} said nothing new"
    cost = sample.tokens * runs.average_cost(run.agent).token
    if agent.cost_per_run and cost > agent.cost_per_run:
        return f"it has cost about {cost:.2f}, of at most {agent.cost_per_run:g}"
    usual = runs.usual(run.agent, agent.rate_over)
    tokens = per_minute(sample.tokens - run.tokens, now.since(run.counted or run.moment), agent)
    if agent.times_usual and usual.turns and sample.turns > agent.times_usual * usual.turns:
        return f"it took {sample.turns:,} turns, and {usual.turns:,.0f} are usual"
    if agent.times_usual and usual.tokens and tokens > agent.times_usual * usual.tokens:
        return f"it took {tokens:,.0f} tokens a minute, and {usual.tokens:,.0f} are usual"
    return ""


def excess_output(agent: AgentSettings | None, sample: RunSample) -> str:
    """In words, that a run has printed more than it may; empty if it has not."""
    is_over = agent and sample.output > agent.output
    return f"it printed more than {format_size(agent.output)}" if agent and is_over else ""


def excess_cost(run: Run, agent: AgentSettings | None, cost: float, runs: AgentRuns, now: Moment) -> str:
    """In words, that a run which has ended cost what it may at most, or far more a minute than is usual; else empty."""
    if agent and agent.cost_per_run and cost >= agent.cost_per_run:
        return f"it cost {cost:.2f}, of at most {agent.cost_per_run:g}"
    if agent is None or not agent.times_usual:
        return ""
    usual, rate = runs.usual(run.agent, agent.rate_over).cost, per_minute(cost, now.since(run.moment), agent)
    is_far = usual and rate > agent.times_usual * usual
    return f"it cost {rate:.2f} a minute, and {usual:.2f} is usual" if is_far else ""


def per_minute(amount: float, took_us: int, agent: AgentSettings) -> float:
    """The rate of an amount; what came in a shorter time than rates are taken over counts as if it came in that."""
    return amount * UNITS["m"] / max(took_us, agent.rate_over)
