"""What the parts of this release add up to: the fold of all projections."""

from pulse_core.projections import Fold
from pulse_core.projections.core import CORE

FOLD = Fold(CORE)
