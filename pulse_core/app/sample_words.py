"""What one sample says about a process or a condition, in words."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pulse_core.app.compute_status import probe_words
from pulse_core.model.json_types import Json
from pulse_core.model.names import NETWORK
from pulse_core.model.text import count
from pulse_core.model.vitals import Sample
from pulse_core.rules.measurements import gauges_of
from pulse_core.rules.survival.process_watchdog import WATCHER
from pulse_core.settings.settings import Settings

SHOWN = 6
"""Values of a sample that nobody here knows which are told."""


def sample_words(
    sample: Sample, abouts: tuple[str, ...], settings: Settings, are_of_then: bool = True
) -> str:
    """The words; abouts: names of what it may be about, the likeliest first; are_of_then: the settings were in force."""
    with suppress(KeyError, TypeError, AttributeError):  # a sample of another version
        since = "" if are_of_then else ", by the settings of now"
        measured = {
            gauge.name: gauge.words + since * ("(allowed: " in gauge.words)
            for gauge in gauges_of(sample, settings)
        }
        for about in abouts:
            if words := measured.get(about) or _entry_words(sample, about):
                return words
        if sample.key == NETWORK and sample.data:
            return _network_words(sample.data)
    return _values(sample.data)


def _entry_words(sample: Sample, about: str) -> str:
    """What the sample's own entry about this says; a condition's entry has the name behind its first colon."""
    if about not in sample.data and sample.key == WATCHER:
        about = about.partition(":")[2]
    entry = sample.data.get(about) or sample.data.get(about.partition(":")[2])
    if not isinstance(entry, Mapping):
        return ""
    if sample.key == WATCHER:
        pid, detail = entry.get("pid"), entry.get("detail", "")
        state = "" if entry["up"] and detail else f"{about} is up" if entry["up"] else f"{about} is not up"
        who = f"process {pid} is there" if pid and not entry["up"] else ""
        probed = probe_words(entry)
        return "; ".join(filter(None, (state, who, detail if detail not in probed else "", probed)))
    said = entry.get("words") or entry.get("detail")
    if not said and (took := entry.get("latency_ms")) is not None:
        said = f"{about} answered in {took:.0f} ms"
    if not said and entry.get("ok") is True:  # a check that is well has no words
        said = f"{about} is well"
    return str(said or _values(entry))


def _network_words(data: Mapping[str, Json]) -> str:
    targets: Mapping[str, Any] = data["targets"]
    wrong = [f"{name}: {one['detail']}" for name, one in targets.items() if not one["ok"]]
    state = f"the network is {data['state'] or 'well'} in {count(data['streak'], 'round')}"
    return "; ".join((state, *wrong[:SHOWN]))


def _values(data: Mapping[str, Json]) -> str:
    plain = [f"{name} {value}" for name, value in data.items() if isinstance(value, str | int | float)]
    left = len(data) - len(plain[:SHOWN])
    return ", ".join([*plain[:SHOWN], *([f"{count(left, 'more value')} in --json"] if left else [])])
