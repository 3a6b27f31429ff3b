"""`upulse dev` as lines, one an event: for pipes, and for programs as JSON."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from pulse_core.app.engine.dev_reports import (
    DevRemark,
    DevReport,
    LoadRefused,
    RulesLoaded,
    SampleTaken,
    TickSeen,
    TriedEffect,
)
from pulse_core.model.moment import iso
from pulse_core.model.text import count, one_line
from pulse_core.ports.engine import EngineFault
from upulse_cli.time_args import local, took

SHOWN = 200
EFFECT_FIELDS = {"key", "action", "rule", "reason", "params"}


class Lines:
    """Lines for people. What a rule wishes or notes tick after tick is said when it begins, errors every time."""

    def __init__(self) -> None:
        self._said: frozenset[tuple[str, str]] = frozenset()

    def of(self, news: DevReport) -> Iterator[str]:
        """What there is to say."""
        match news:
            case RulesLoaded():
                self._said = frozenset()
                yield f"loaded    {began(news)}"
            case LoadRefused():
                yield f"refused   {one_line(news.words)}{'; the rules before go on' if news.goes_on else ''}"
            case TickSeen():
                yield from self._seen(news)
            case SampleTaken():
                yield f"sample    {sensed(news)}"
            case EngineFault():
                yield f"error     {one_line(f'{news.whose}: {news.message}')}"
            case DevRemark():
                yield f"          {one_line(news.words)}"

    def _seen(self, seen: TickSeen) -> Iterator[str]:
        wishes = [("wish", f"{wished(wish)}") for wish in seen.wishes]
        notes = [("note", f"{layer.rule}: {note}") for layer in seen.layers for note in layer.notes]
        for what, words in (*wishes, *notes):
            if (what, words) not in self._said:
                yield f"{what:<9} {one_line(words)}"
        self._said = frozenset((*wishes, *notes))
        yield from (f"error     {one_line(f'{fault.whose}: {fault.message}')}" for fault in seen.faults)
        yield from (f"warning   {one_line(words)}" for words in seen.warnings)
        yield f"tick      {summary(seen)}"


def began(news: RulesLoaded) -> str:
    """What was loaded, and how long that took."""
    rules = ", ".join(news.loaded.rules) or "no rules"
    return f"{one_line(rules)} in {took(news.took * 1e6)}"


def wished(wish: TriedEffect) -> str:
    """A wish, with what would become of it."""
    effect, state = (
        wish.effect,
        {"open": " (open already)", "held": " (held by survival)"}.get(wish.state, ""),
    )
    refused = f"; it would be refused: {wish.why}" if wish.why else ""
    return f"{effect.key}{state} by {effect.rule}: {effect.reason}{refused}"


def sensed(news: SampleTaken) -> str:
    """A sample of a watcher of staging's, as far as it fits into a line."""
    return one_line(
        f"{news.sample.key}: {json.dumps(news.sample.data, ensure_ascii=False, default=str)[:SHOWN]}"
    )


def summary(seen: TickSeen) -> str:
    """A tick in a few words."""
    number = "the last one again" if seen.is_again else str(seen.snapshot.tick)
    rules = count(len(seen.layers), "rule")
    wishes, errors = count(len(seen.wishes), "effect"), count(len(seen.faults), "error")
    return f"{number} at {local(iso(seen.snapshot.now.at))}: {rules} in {took(seen.took * 1e6)}, {wishes}, {errors}"


def spelled(news: DevReport) -> Mapping[str, Any]:
    """The same as JSON values."""
    match news:
        case RulesLoaded(loaded, files, seconds):
            found = {"rules": list(loaded.rules), "projections": sorted(loaded.projections)}
            return {
                "what": "loaded",
                **found,
                "files": list(files),
                "took_ms": _ms(seconds),
            }
        case LoadRefused(words, files, goes_on):
            return {"what": "refused", "why": words, "files": list(files), "goes_on": goes_on}
        case TickSeen():
            return _tick(news)
        case SampleTaken(watcher, sample):
            at, data = iso(sample.moment.at), dict(sample.data)
            return {"what": "sample", "watcher": watcher, "key": sample.key, "at": at, "data": data}
        case EngineFault():
            return {"what": "error", **news._asdict()}
        case DevRemark(words):
            return {"what": "remark", "words": words}


def _tick(seen: TickSeen) -> Mapping[str, Any]:
    return {
        "what": "tick",
        "tick": seen.snapshot.tick,
        "at": iso(seen.snapshot.now.at),
        "again": seen.is_again,
        "took_ms": _ms(seen.took),
        "rules": [asdict(layer) for layer in seen.layers],
        "effects": [
            {**wish.effect.model_dump(include=EFFECT_FIELDS), "state": wish.state, "why": wish.why}
            for wish in seen.wishes
        ],
        "errors": [fault._asdict() for fault in seen.faults],
        "warnings": list(seen.warnings),
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
