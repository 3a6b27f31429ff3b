"""Ticks of which more is known than the samples that are left: their snapshots were kept, since they emitted effects."""

import json
from hashlib import sha256
from pathlib import Path

from pulse_adapters.sqlite.references import object_path
from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Sample, Window


def kept_windows(objects: Path, name: str | None) -> dict[str, Window] | None:
    """The windows in a kept snapshot; None if it was not kept, or is not what was kept."""
    if name is None:
        return None
    try:
        blob = object_path(objects, name).read_bytes()
        if sha256(blob).hexdigest() != name:
            return None
        windows: dict[str, list[tuple[int, list[object], dict[str, object]]]] = json.loads(blob)["windows"]
        return {
            key: Window(tuple(Sample(id_, key, Moment(*moment), data) for id_, moment, data in rows))  # type: ignore[arg-type]
            for key, rows in windows.items()
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None
