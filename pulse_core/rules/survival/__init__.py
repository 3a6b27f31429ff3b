"""The hard-coded rules that keep a machine alive, outermost first.

They await nothing but `inner`, and nothing outside the package can change them. `pulse_core.composition` puts those of
capabilities into their places among these.
"""

from pulse_core.rules.onion import Rule
from pulse_core.rules.survival.blast_radius import blast_radius_with
from pulse_core.rules.survival.error_escalate import Explains, error_escalate_with
from pulse_core.rules.survival.holds import Holds
from pulse_core.rules.survival.kill_switch import kill_switch
from pulse_core.rules.survival.network_watchdog import network_watchdog
from pulse_core.rules.survival.process_watchdog import process_watchdog
from pulse_core.rules.survival.resource_guard import resource_guard
from pulse_core.rules.survival.rollback import auto_rollback, panic_rollback
from pulse_core.rules.survival.safe_mode import safe_mode
from pulse_core.rules.survival.usage_guard import usage_guard


def survival_rules(holds: Holds, explains: Explains) -> tuple[Rule, ...]:
    """The core's own survival rules, outermost first.

    holds: returns what is held back now; explains: which log lines a condition explains.
    """
    return (
        kill_switch,
        blast_radius_with(holds),
        panic_rollback,
        auto_rollback,
        safe_mode,
        process_watchdog,
        usage_guard,
        resource_guard,
        network_watchdog,
        error_escalate_with(explains),
    )
