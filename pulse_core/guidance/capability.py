"""The capability of guidance."""

from pulse_core.capability import Capability
from pulse_core.guidance.admission import check_acknowledgement, check_change, check_import, check_known
from pulse_core.guidance.events import (
    KINDS,
    GuidanceAcknowledged,
    GuidanceChanged,
    GuidanceImported,
    GuidanceInitialized,
    GuidanceUnwatched,
    GuidanceWatched,
)
from pulse_core.guidance.projection import GUIDANCE
from pulse_core.guidance.rules import remind_of_guidance
from pulse_core.guidance.settings import SETTINGS
from pulse_core.guidance.status import lines

CAPABILITY = Capability(
    "guidance",
    kinds=KINDS,
    projections=(GUIDANCE,),
    admits={
        GuidanceImported.kind: check_import,
        GuidanceInitialized.kind: check_import,
        GuidanceChanged.kind: check_change,
        GuidanceAcknowledged.kind: check_acknowledgement,
        GuidanceWatched.kind: check_known,
        GuidanceUnwatched.kind: check_known,
    },
    rules=(remind_of_guidance,),
    settings=(SETTINGS,),
    status=lines,
)
