"""How the engine stands: what runs, what the log says, what staging holds."""

from collections.abc import Mapping
from typing import Any

from pulse_core.app.engine.context import WorkflowContext
from pulse_core.app.engine.promote import main_moved_by_hand
from pulse_core.app.state import current_state
from pulse_core.model.errors import NotAnswering


def engine_status(engine: WorkflowContext) -> Mapping[str, Any]:
    """`running`: what the daemon says of its host (None without one); `log`, `main` and `staging`: the rest."""
    now, repository = current_state(engine.home).engine, engine.repository
    staging = repository.staging()
    return {
        "running": _running(engine),
        "commit": now.commit or None,
        "previous": now.previous or None,
        "good": now.good or None,
        "main": repository.head(),
        "moved": main_moved_by_hand(engine, now.commit),
        "errors": len(now.errors),
        "breakdowns": len(now.breakdowns),
        "quarantined": dict(now.quarantined),
        "requests": [event.subject for event in now.requests.values()],
        "staging": {
            "commit": staging.commit,
            "dirty": list(staging.dirty),
            "ahead": staging.ahead,
            "behind": staging.behind,
            "advice": list(staging.advice()),
        },
    }


def _running(engine: WorkflowContext) -> Any:
    try:
        return engine.home.daemon.status().get("engine")
    except NotAnswering:
        return None
