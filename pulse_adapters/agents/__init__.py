"""Agents on this machine: the folders in which they work, what they are told there, and what they have printed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pulse_adapters.agents.run_tokens import run_scopes, run_sockets, user_fault
from pulse_core.agents.availability import CONDITION
from pulse_core.agents.orphans import OrphansWatcher
from pulse_core.agents.projection import RUNS
from pulse_core.agents.rules import KEY
from pulse_core.agents.settings import AGENTS, workspaces_in
from pulse_core.agents.tools import unfilled
from pulse_core.capability import ExecutorContext, WatcherContext
from pulse_core.model.vitals import Sample
from pulse_core.ports.executor import Executor
from pulse_core.ports.watcher import Watcher
from pulse_core.settings.settings import Settings
from pulse_core.watch.on_demand import WatcherOnDemand

scopes, sockets = run_scopes, run_sockets
"""What callers of the socket that are runs are bound to; and where those of other users are answered, each by its group."""


def needed_watchers(context: WatcherContext) -> Sequence[Watcher]:
    """The watcher of runs; in safe mode runs are begun as ever, and whoever is not watched would lose his claim."""

    def is_needed() -> bool:
        state = context.state()
        has_runs = state.of(RUNS) != RUNS.empty
        is_failing = any(name.startswith(CONDITION) for name in state.conditions.raised)
        return bool(AGENTS.of(context.settings())) or has_runs or is_failing

    def make() -> Watcher:
        from pulse_adapters.agents.disk_run_files import DiskRunFiles
        from pulse_core.agents.watcher import AgentRunsWatcher

        return AgentRunsWatcher(context, DiskRunFiles(context.home.path, context.settings))

    return (WatcherOnDemand(KEY, context, RUNS.kinds, is_needed, make, (CONDITION,)),)


def watchers(context: WatcherContext) -> Sequence[Watcher]:
    """The watcher of what runs have left behind."""
    return (OrphansWatcher(context),)


def executors(context: ExecutorContext) -> Sequence[Executor]:
    """The executors of agents, imported when the first of their actions is requested."""
    from pulse_adapters.agents.disk_run_files import DiskRunFiles
    from pulse_core.agents.executors import agent_executors

    return agent_executors(context, DiskRunFiles(context.home.path, context.settings))


def doubts(home: Path, settings: Settings, samples: Sequence[Sample]) -> Mapping[str, str]:
    """By name, in words, the agents that can't be started as their user, or have words for which nothing is filled in."""
    above, found = workspaces_in(home, settings), dict[str, str]()
    for one in AGENTS.of(settings):
        told = (user_fault(one.user, above), *unfilled((*one.command, *one.args)))
        found[f"agent {one.name}"] = "; ".join(filter(None, told))
    return {name: words for name, words in found.items() if words}
