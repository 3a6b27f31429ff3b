"""The hard-coded rules that keep a machine alive, outermost first, and the manners they all obey.

They await nothing but `inner`, and nothing outside the package can reach them.
"""

from pulse_core.rules.onion import Rule
from pulse_core.rules.survival.auto_rollback import auto_rollback
from pulse_core.rules.survival.blast_radius import blast_radius
from pulse_core.rules.survival.error_escalate import error_escalate
from pulse_core.rules.survival.kill_switch import kill_switch
from pulse_core.rules.survival.llm_watchdog import llm_watchdog
from pulse_core.rules.survival.network_watchdog import network_watchdog
from pulse_core.rules.survival.panic_rollback import panic_rollback
from pulse_core.rules.survival.process_watchdog import process_watchdog
from pulse_core.rules.survival.resource_guard import resource_guard
from pulse_core.rules.survival.silence import silence

SURVIVAL: tuple[Rule, ...] = (
    kill_switch,
    blast_radius,
    silence,
    panic_rollback,
    auto_rollback,
    process_watchdog,
    resource_guard,
    llm_watchdog,
    network_watchdog,
    error_escalate,
)

__all__ = [
    "SURVIVAL",
    "auto_rollback",
    "blast_radius",
    "error_escalate",
    "kill_switch",
    "llm_watchdog",
    "network_watchdog",
    "panic_rollback",
    "process_watchdog",
    "resource_guard",
    "silence",
]
