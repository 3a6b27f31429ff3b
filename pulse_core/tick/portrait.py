"""A snapshot as JSON: what is kept of a tick that emitted effects, so that it can be shown and folded again."""

import json

from pulse_core.projections import BUILT_IN, Snapshot

VERSION = 1


def portrait(snapshot: Snapshot) -> bytes:
    """The snapshot with its windows and projections; settings by digest. UTF-8 JSON with its own version."""
    parts = {
        name: json.loads(projection.dump(getattr(snapshot.projected, name)))
        for name, projection in BUILT_IN.items()
    }
    windows = {
        key: [[sample.id, sample.moment, dict(sample.data)] for sample in window.samples]
        for key, window in snapshot.windows.items()
    }
    whole = {
        "version": VERSION,
        "tick": snapshot.tick,
        "now": snapshot.now,
        "seq": snapshot.projected.seq,
        "supposed": snapshot.projected.supposed,
        "settings": snapshot.settings.digest,
        "windows": windows,
        "folds": {name: projection.version for name, projection in BUILT_IN.items()},
        "projected": parts,
    }
    return json.dumps(whole, separators=(",", ":"), default=str).encode()
