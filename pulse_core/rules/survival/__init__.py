"""The hard-coded rules that keep a machine alive, outermost first, and the manners they all obey.

They await nothing but `inner`, and nothing outside the package can reach them.
"""

from pulse_core.rules.onion import Rule
from pulse_core.rules.survival.blast_radius import blast_radius
from pulse_core.rules.survival.kill_switch import kill_switch
from pulse_core.rules.survival.process_watchdog import process_watchdog

SURVIVAL: tuple[Rule, ...] = (kill_switch, blast_radius, process_watchdog)

__all__ = ["SURVIVAL", "blast_radius", "kill_switch", "process_watchdog"]
