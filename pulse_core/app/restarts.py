"""Requests of a person about guarded processes: that they are stopped, started or restarted."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

from pulse_core.app.append import Appended, append_all
from pulse_core.app.context import HomeContext
from pulse_core.app.status import guarded_processes, home_status
from pulse_core.model.durations import duration_text
from pulse_core.model.errors import Refused, UnknownName
from pulse_core.model.names import RESTART_PROCESS


def request_of_each(
    home: HomeContext, kind: str, names: Sequence[str], data: Mapping[str, Any]
) -> Sequence[Appended]:
    """Record this request for each of these processes; raises UnknownName before anything is recorded if one is unknown."""
    if len(names) > 1:  # a single one is refused where it is recorded
        known = [process["name"] for process in home_status(home)["processes"]]
        for name in names:
            if name not in known:
                raise UnknownName("guarded process", name, known)
    return append_all(home, _drafts(home, kind, dict.fromkeys(names), data))


def _drafts(
    home: HomeContext, kind: str, names: Iterable[str], data: Mapping[str, Any]
) -> Sequence[Mapping[str, Any]]:
    return [
        {"kind": kind, "subject": name, "data": data, "cause": None, "id": home.new_id()} for name in names
    ]


def not_started_by_itself(home: HomeContext, names: Collection[str]) -> Sequence[str]:
    """Those of these processes that stay down after a stop, however long that holds: `autostart = false`."""
    processes = home.settings().settings.process
    return [one.name for one in processes if one.name in names and not one.autostart]


def down_for_now(home: HomeContext) -> Mapping[str, str]:
    """By name, in words, those that are down and are tried again later, which other settings may have mended."""
    states = ("backing-off", "flapping")
    return {name: one["why"] for name, one in guarded_processes(home).items() if one["state"] in states}


def request_holds(home: HomeContext, names: Iterable[str], action: str = RESTART_PROCESS) -> Iterator[str]:
    """What holds back the starts, or the stops, of these processes now, in words: a pause, or silences."""
    from pulse_core.app.state import current_snapshot  # settings and rules take long to import
    from pulse_core.composition import current_holds
    from pulse_core.rules.survival.holds import longest_hold

    curr = current_snapshot(home).snapshot
    if curr.control.paused:
        does = "starts" if action == RESTART_PROCESS else "ends"
        yield f"Pulse is paused by {curr.control.by}, and {does} nothing until: upulse resume"
        return
    holds = current_holds(curr)
    for name in names:
        if hold := longest_hold(f"{action}:{name}", holds):
            yield f"{name} is held back for another {duration_text(hold.left_us)} by {hold.whose}"


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
    asked = [name for name in order if name in wanted]
    return append_all(home, _drafts(home, "process-restart-requested", asked, {"why": why}))
