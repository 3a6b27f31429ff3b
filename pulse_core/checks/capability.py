"""The capability of checks."""

from pulse_core.capability import Capability, SurvivalRule
from pulse_core.checks.conclusions import PREFIX, TOPIC
from pulse_core.checks.rule import check_watchdog
from pulse_core.checks.settings import CHECKS
from pulse_core.checks.status import lines, report, seen
from pulse_core.model.names import RUN_COMMAND

CAPABILITY = Capability(
    "checks",
    # Inside of the rules that see to processes and the machine, which come first, and outside of the network's and the
    # logs', whose trouble may be what a check is about.
    survival_rules=(SurvivalRule(check_watchdog, inside_of="resource_guard"),),
    topics=frozenset({TOPIC}),
    reserved=frozenset({f"{RUN_COMMAND}:{PREFIX}"}),
    settings=(CHECKS,),
    status=lines,
    subject=report,
    seen=seen,
)
