"""All that is known of one guarded process: its state and why, what it takes, what happened to it, and what it printed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pulse_core.app.context import HomeContext
from pulse_core.app.effect_timeline import effect_timeline
from pulse_core.app.state import current_state
from pulse_core.app.status import home_status, why_last_known
from pulse_core.app.subject_report import past_status
from pulse_core.app.why import NEWS
from pulse_core.model.errors import PulseError, UnknownName
from pulse_core.model.event import Event
from pulse_core.model.kinds import EffectFailed, RestartDelayed
from pulse_core.model.names import RESTART_PROCESS, USAGE
from pulse_core.model.payload import decode_plain
from pulse_core.ports.host import TreeUsage
from pulse_core.ports.readers import EventQuery, EventReader
from pulse_core.rules.survival.process_watchdog import WATCHER

NEWEST = 8
"""Events of it that are shown."""


def process_report(
    home: HomeContext, name: str, tree: Callable[[int], TreeUsage], last_lines: Callable[[], Sequence[str]]
) -> Mapping[str, Any]:
    """The status of a guarded process, or of one that was guarded once, with its tree, its probes, its newest events and its
    last lines.

    tree: what the tree of a process takes; last_lines: what it printed last.
    """
    status = home_status(home)
    by_name = {process["name"]: process for process in status["processes"]}
    with home.events() as log:
        process = by_name.get(name) or past_status(log, name, current_state(home))
        if process is None and (faults := status.get("settings_faults")):
            raise PulseError(
                f"nothing is known of a process {name!r}, since the settings can't be read: {faults[0]}"
            )
        if process is None:
            raise UnknownName("guarded process", name, by_name)
        news = _news(log, name)
    looked = status["vitals"].get(WATCHER, {}).get(name, {})
    return {
        **process,
        "conditions": [
            one for one in status["conditions"] if one["name"].rpartition(":")[0] == f"{USAGE}{name}"
        ],
        "last_known": why_last_known(status["daemon"]) or None,
        "tree": tree(process["pid"]).as_json() if process["pid"] else None,
        "probe": {"up": looked.get("up"), "answering": looked.get("answering"), **looked.get("probe", {})},
        "events": [event.spelled() for event in reversed(news[:NEWEST])],
        "events_more": len(news) > NEWEST,
        "last_lines": list(last_lines()),
    }


def _news(log: EventReader, name: str) -> Sequence[Event]:
    """What happened to it and which starts failed, newest first; of what held it back only what is not told once more."""
    news = log.events(EventQuery(subject=name, kinds=NEWS), limit=3 * NEWEST, newest_first=True)
    wished = EventQuery(subject=f"{RESTART_PROCESS}:{name}", kinds=("effect",))
    ends = [
        effect_timeline(log, wish).outcome for wish in log.events(wished, limit=NEWEST, newest_first=True)
    ]
    failed = [end for end in ends if end and end.kind == EffectFailed.kind]
    told, has_delay = list[Event](), False
    for row in sorted((*news, *failed), key=lambda one: one.seq, reverse=True):
        is_delay = row.kind == RestartDelayed.kind
        if not (is_delay and has_delay and decode_plain(row.data).get("lasts")):
            told.append(row)
        has_delay = has_delay or is_delay
    return told
