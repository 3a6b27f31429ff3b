"""What may be recorded and by whom: the gate that every draft passes.

It requests no effects and carries none out.
"""

from pulse_core.record.gate import Gate, RecordedDraft
from pulse_core.record.journal import Journal
from pulse_core.record.view import View

__all__ = ["Gate", "Journal", "RecordedDraft", "View"]
