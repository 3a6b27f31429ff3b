"""Notifies people of the daemon itself: that the one before has died, and what is left out in safe mode."""

from pulse_core.model.moment import describe_span
from pulse_core.model.verdict import Verdict
from pulse_core.projections.notices import HOUR
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner
from pulse_core.rules.survival.notices import notify_once, notify_over, notify_unless_told

TOPIC, DEATH = "safe-mode", "daemon"


async def safe_mode(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Notify when the daemon before this one died, when Pulse runs in safe mode, and when everything is run again."""
    verdict, control = await inner(prev, curr), curr.control
    if control.death and control.started is not None:
        span = describe_span(control.unwatched, control.started.at)
        text = f"It ended {span}, without a stop: {control.death}. See: upulse daemon logs"
        verdict = verdict.plus(
            *notify_once(
                DEATH, "the daemon died, and was started again", text, curr, control.started, "warning", HOUR
            )
        )
    if control.safe is None:
        return verdict.plus(*notify_over(TOPIC, "safe mode", "everything is run again", curr))
    without = ", ".join(control.left_out)
    remedy = f" {curr.engine.remedy};" if curr.engine.remedy else ""
    text = (
        f"{control.crashes} daemons in a row were killed, or failed, within a minute of their start; this one runs"
        f" without {without}. Guarded processes are restarted as ever. See: upulse daemon logs, upulse events --kind error;"
        f"{remedy} run everything again: upulse daemon restart --normal"
    )
    verdict = verdict.noting(f"safe mode: without {without}")
    return verdict.plus(
        *notify_unless_told(
            TOPIC, f"Pulse runs in safe mode, without {without}", text, curr, news=control.left_out_since
        )
    )
