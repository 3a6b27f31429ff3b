"""The capability of guidance."""

from pulse_core.capability import Capability
from pulse_core.guidance.events import KINDS
from pulse_core.guidance.projection import ADMITS, GUIDANCE, lines
from pulse_core.guidance.rules import SETTINGS, remind_of_guidance

CAPABILITY = Capability(
    "guidance",
    kinds=KINDS,
    projections=(GUIDANCE,),
    admits=ADMITS,
    rules=(remind_of_guidance,),
    own_topics=frozenset({"guidance"}),
    settings=(SETTINGS,),
    status=lines,
)
