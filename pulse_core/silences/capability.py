"""The capability of silences."""

from pulse_core.capability import Capability, SurvivalRule
from pulse_core.silences.admission import check_silence
from pulse_core.silences.events import SilenceAdded, SilenceRemoved
from pulse_core.silences.listing import silence_report
from pulse_core.silences.projection import SILENCES
from pulse_core.silences.rule import silence, silences_in_force, status_lines
from pulse_core.silences.settings import WINDOWS

CAPABILITY = Capability(
    "silences",
    kinds=(SilenceAdded, SilenceRemoved),
    projections=(SILENCES,),
    admits={SilenceAdded.kind: check_silence},
    alone=frozenset({SilenceAdded.kind}),
    # Outside of everything that acts or tells, and inside of the budget: what is held back costs none of it.
    survival_rules=(SurvivalRule(silence, inside_of="blast_radius"),),
    holds=silences_in_force,
    status=status_lines,
    subject=silence_report,
    settings=(WINDOWS,),
)
