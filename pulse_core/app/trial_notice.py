"""A notice that is sent to see whether notices arrive."""

from pulse_core.app.context import HomeContext
from pulse_core.app.effects import add_effect, cancel_effect, held_back, outcome_within
from pulse_core.model.errors import PulseError
from pulse_core.model.names import TRIAL_NOTICE
from pulse_core.projections.effects import Phase

PATIENCE_S = 60.0
TITLE = "a test of notices"


def send_trial_notice(home: HomeContext) -> str:
    """Send a notice to all addresses, and return where it arrived, in words; raises PulseError if it did not everywhere."""
    if not home.settings().settings.notice_urls:
        raise PulseError(
            "[notify] has no urls: notices are only logged; give some in the settings, and reload"
        )
    params = {
        "title": TITLE,
        "text": "Somebody asked for it: upulse notify test.",
        "over": True,
        "severity": "critical",
    }
    answer = add_effect(home, {"action": "notify", "key": TRIAL_NOTICE, "params": params}, to_wait=True)
    one = outcome_within(home, str(answer.event["id"]), PATIENCE_S, or_tried=True)
    held = held_back(home, one)
    if one.is_open:
        cancel_effect(home, one, "it was a test, which is not tried again")
    told = one.steps[-1][0].spelled()["data"] if one.steps else {}
    reached = (
        f"it arrived at {', '.join(sent_to)}" if (sent_to := told.get("result", {}).get("sent_to")) else ""
    )
    if reached and one.phase is Phase.ACKED:
        return reached
    only = told.get("result", {}).get("only")
    why = told.get("error") or told.get("why") or only or held or f"no answer within {PATIENCE_S:g} s"
    raise PulseError(f"{reached}; not at {why}" if reached else f"it arrived nowhere: {why}")
