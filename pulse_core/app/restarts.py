"""Asking for restarts of guarded processes."""

from collections.abc import Sequence
from graphlib import TopologicalSorter

from pulse_core.app.append import Appended, append_all
from pulse_core.app.context import HomeContext
from pulse_core.model.errors import Refused


def request_restarts(home: HomeContext, names: Sequence[str] | None, why: str) -> Sequence[Appended]:
    """Ask for the restart of these processes (None: all), those first that others depend on; raises Refused."""
    processes = {process.name: process for process in home.settings().settings.process}
    if not processes:
        raise Refused("no process is guarded; add [[process]] to the settings (upulse config path)")
    if unknown := [name for name in names or () if name not in processes]:
        raise Refused(
            f"no guarded process {', '.join(map(repr, unknown))}; there are: {', '.join(processes)}"
        )
    wanted = processes if names is None else set(names)
    order = TopologicalSorter(
        {name: process.depends_on for name, process in processes.items()}
    ).static_order()
    return append_all(
        home,
        [
            {
                "kind": "process-restart-requested",
                "subject": name,
                "data": {"why": why},
                "cause": None,
                "id": home.new_id(),
            }
            for name in order
            if name in wanted
        ],
    )
