"""`upulse notify`: whether notices arrive."""

from upulse_cli.options import HomeDir, group, open_home
from upulse_cli.output import say

app = group("Try whether notices arrive.")


@app.command("test")
def send_trial(home: HomeDir = None) -> None:
    """Send a notice, and say of each address whether it arrived.

    To all addresses of [notify] in force, by the daemon. Exits 1 if one of them did not take it; it is not tried again.
    Addresses are named without their secrets; a #1a2b at the end is the beginning of the URL's SHA-256.
    """
    from pulse_core.app.trial_notice import send_trial_notice

    say(f"Sent: {send_trial_notice(open_home(home))}.")
