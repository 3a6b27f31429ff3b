"""Encodes a snapshot as JSON: stored for ticks that emitted effects, so that it can be shown and folded again."""

import json

from pulse_core.composition import FOLD
from pulse_core.projections import Snapshot

VERSION = 1


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The snapshot with its windows and projections; settings by digest. UTF-8 JSON with its own version."""
    parts = {name: json.loads(text) for name, text in FOLD.dump(snapshot.state).items()}
    windows = {
        key: [[sample.id, sample.moment, dict(sample.data)] for sample in window.samples]
        for key, window in snapshot.windows.items()
    }
    whole = {
        "version": VERSION,
        "tick": snapshot.tick,
        "now": snapshot.now,
        "seq": snapshot.state.seq,
        "supposed": snapshot.state.provisional,
        "settings": snapshot.settings.digest,
        "windows": windows,
        "folds": FOLD.versions,
        "projected": parts,
    }
    return json.dumps(whole, separators=(",", ":"), default=str).encode()
