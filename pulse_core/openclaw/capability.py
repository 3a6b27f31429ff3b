"""The capability of OpenClaw gateways."""

from pulse_core.capability import Capability, SurvivalRule
from pulse_core.openclaw.rule import KEY, RESTORE_CONFIG, restore_config, status_lines
from pulse_core.openclaw.settings import OPENCLAW

CAPABILITY = Capability(
    "openclaw",
    # Inside of the rule that starts the gateway again, which then does so with the config that was put back.
    survival_rules=(SurvivalRule(restore_config, inside_of="process_watchdog"),),
    topics=frozenset({KEY}),
    settings=(OPENCLAW,),
    status=status_lines,
    actions=(RESTORE_CONFIG,),
)
