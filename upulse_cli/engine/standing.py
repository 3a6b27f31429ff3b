"""How the engine stands: what runs, what the log says, what staging holds."""

from collections.abc import Mapping
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.git.repository import Repository
from pulse_core.app.status import home_status
from upulse_cli.engine.asking import engine_of
from upulse_cli.engine.mainline import glanced
from upulse_cli.wiring.home import home_context


def engine_standing(home: Home) -> Mapping[str, Any]:
    """`running`: what the daemon says of its host (None without one); `log`, `main` and `staging`: the rest."""
    engine, repository = engine_of(home), Repository(home.path)
    staging = repository.staging()
    return {
        "running": home_status(home_context(home)).get("engine"),
        "commit": engine.commit or None,
        "previous": engine.previous or None,
        "good": engine.good or None,
        "main": repository.head(),
        "moved": glanced(home, engine.commit),
        "errors": len(engine.errors),
        "breakdowns": len(engine.breakdowns),
        "quarantined": dict(engine.quarantined),
        "requests": [event.subject for event in engine.requests.values()],
        "staging": {
            "commit": staging.commit,
            "dirty": list(staging.dirty),
            "ahead": staging.ahead,
            "behind": staging.behind,
            "advice": list(staging.advice()),
        },
    }
