"""Bounds what ticks record of the engine's rules: their layers and notes, by number and bytes, in a tick and over time."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pulse_core.model.tick import LayerOutcome
from pulse_core.model.token_bucket import TokenBucket

LAYERS, LAYERS_WHEN_SPENT = 200, 20
"""The most that a tick records, outermost ones first; and while no room is left."""
NOTES, NOTE_LENGTH, BYTES = 20, 500, 8 * 1024
"""The most notes of a rule, characters of each, and bytes of all notes of a tick."""
BYTES_A_SECOND, BURST = 32 * 1024, 1024 * 1024
"""What ticks may record in the long run, and at once; a tick of forty rules without notes takes some 2 KiB."""
_LAYER_BYTES = 32


@dataclass
class RecordLimit:
    """How many bytes may be recorded now; it grows with time."""

    budget: TokenBucket = field(default_factory=lambda: TokenBucket(BURST, BYTES_A_SECOND))

    def bounded(self, layers: Sequence[LayerOutcome], now: float) -> tuple[LayerOutcome, ...]:
        """What is recorded of these layers, innermost first; what is left out is counted in a rule's last note.

        now: seconds of any clock that is never set back.
        """
        room = self.budget.room(now)
        kept, left = [], min(BYTES, max(0, int(room)))
        for layer in layers[-LAYERS if room > 0 else -LAYERS_WHEN_SPENT :]:
            self.budget.spend(len(layer.rule) + _LAYER_BYTES)
            if layer.notes:
                layer, took = _bounded_notes(layer, left)
                left -= took
                self.budget.spend(took)
            kept.append(layer)
        return tuple(kept)


def _bounded_notes(layer: LayerOutcome, left: int) -> tuple[LayerOutcome, int]:
    """The layer with no more notes than fit, and their bytes."""
    kept, took = [], 0
    for note in layer.notes[:NOTES]:
        note = note if len(note) <= NOTE_LENGTH else note[: NOTE_LENGTH - 3] + "..."
        took += (size := len(note.encode("utf-8", "replace")))
        if took > left:
            took -= size
            break
        kept.append(note)
    if more := len(layer.notes) - len(kept):
        kept.append(f"and {more:,} more note{'s' if more > 1 else ''}")
    return replace(layer, notes=tuple(kept)), took
