"""A notice that is sent to see whether notices arrive."""

from pulse_core.app.context import HomeContext
from pulse_core.app.effects import add_effect, cancel_effect, outcome_within
from pulse_core.model.errors import PulseError

KEY = "trial-notice"
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
    answer = add_effect(home, {"action": "notify", "key": KEY, "params": params}, to_wait=True)
    one = outcome_within(home, str(answer.event["id"]), PATIENCE_S)
    told = one.spelled()["outcome"] or {}
    if reached := told.get("result", {}).get("sent_to"):
        return f"it arrived at {', '.join(reached)}"
    if one.is_open:
        cancel_effect(home, one, "it was a test, which is not tried again")
    errors = [
        row.spelled()["data"].get("error") for row, _ in one.steps if row.kind == "effect-attempt-failed"
    ]
    why = told.get("error") or next(reversed(errors), None) or told.get("why")
    raise PulseError(f"it did not arrive everywhere: {why or f'no answer within {PATIENCE_S:g} s'}")
