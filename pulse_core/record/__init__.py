"""What may enter the log, and by whom: the one gate that every draft passes.

Nothing is decided here about what should happen, and nothing is carried out.
"""

from pulse_core.record.gate import Gate, RecordedDraft
from pulse_core.record.journal import Journal
from pulse_core.record.view import View

__all__ = ["Gate", "Journal", "RecordedDraft", "View"]
