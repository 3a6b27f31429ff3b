"""`upulse dev` as lines, one an event: for pipes, and for programs as JSON."""

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pulse_core.app.engine.dev_reports import (
    DevRemark,
    DevReport,
    LoadRefused,
    RulesLoaded,
    SampleTaken,
    TickSeen,
    TriedEffect,
)
from pulse_core.model.durations import duration_text
from pulse_core.model.moment import iso
from pulse_core.model.text import count, one_line
from pulse_core.ports.engine import EngineFault
from upulse_cli.time_args import local
from upulse_cli.views.explain import COLOURS
from upulse_cli.views.table import PlainTable

KEPT = 6
WORDS = {
    "open": "not requested", "held": "held by survival", "withheld": "not requested", "refused": "it would be refused",
}  # fmt: skip
STATES = {"new": "green", "open": "dim", "held": "yellow", "withheld": "yellow", "refused": "red"}


class Standing:
    """What the screen knows, moved on by each news."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._began: RulesLoaded | None = None
        self._refused: LoadRefused | None = None
        self._seen: TickSeen | None = None
        self._strays: dict[str, None] = {}
        self._samples: dict[str, SampleTaken] = {}
        self._broken: dict[str, EngineFault] = {}
        self._remarks: deque[str] = deque(maxlen=KEPT)

    def take(self, news: DevReport) -> None:
        """One more thing to show."""
        match news:
            case RulesLoaded():
                self._began, self._refused, self._strays = news, None, {}
                self._samples, self._broken = {}, {}
            case LoadRefused():
                self._refused = news
            case TickSeen():
                self._seen = news
                self._strays.update(dict.fromkeys(news.warnings))
            case SampleTaken():
                self._samples[news.watcher] = news
                self._broken.pop(f"watcher:{news.watcher}", None)
            case EngineFault():
                self._broken[news.whose] = news
            case DevRemark():
                self._remarks.append(news.words)

    def drawn(self) -> RenderableType:
        """The whole screen."""
        return Group(*self._head(), *self._tick(), *self._wrong())

    def _head(self) -> Iterator[RenderableType]:
        yield Text(f"{self.path}    q ends", style="bold")
        if self._refused:
            yield Text(f"refused  {one_line(self._refused.words)}", style="red")
        if self._began:
            yield Text(f"loaded   {began(self._began)}", style="dim" if self._refused else "")
        yield Text()

    def _tick(self) -> Iterator[RenderableType]:
        if (seen := self._seen) is None:
            return
        yield Text(f"tick     {summary(seen)}")
        yield rules(seen)
        for wish in seen.wishes:
            yield Text(f"wish     {one_line(wished(wish))}", style=STATES[wish.state])
        for fault in seen.faults:
            yield Text(f"error    {one_line(f'{fault.whose}: {fault.message}')}", style="red")

    def _wrong(self) -> Iterator[RenderableType]:
        yield from (Text(f"sample   {sensed(one)}") for one in self._samples.values())
        for broke in self._broken.values():
            yield Text(f"error    {one_line(f'{broke.whose}: {broke.message}')}", style="red")
        yield from (Text(f"warning  {one_line(words)}", style="yellow") for words in self._strays)
        yield from (Text(one_line(words), style="dim") for words in self._remarks)


def rules(seen: TickSeen) -> Table:
    """Each rule, outermost first: what it did, how long it took, and what it notes."""
    table = PlainTable("rule", "outcome", "took", "notes", right=("took",))
    for layer in seen.layers:
        outcome = Text(layer.outcome, style=COLOURS.get(layer.outcome, ""))
        table.line(layer.rule, outcome, duration_text(layer.took_us), "; ".join(layer.notes))
    return table


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
    return f"{one_line(rules)} in {duration_text(news.took * 1e6)}"


def wished(wish: TriedEffect) -> str:
    """A wish, with what would become of it."""
    effect = wish.effect
    state = f" ({WORDS[wish.state]}: {wish.why})" if wish.why else ""
    return f"{effect.key}{state} by {effect.rule}: {effect.reason}"


def sensed(news: SampleTaken) -> str:
    """A sample of a watcher of staging's, as far as it fits into a line."""
    words = json.dumps(news.sample.data, ensure_ascii=False, default=str)
    return one_line(f"{news.sample.key}: {words[:SHOWN]}{'…' * (len(words) > SHOWN)}")


def summary(seen: TickSeen) -> str:
    """A tick in a few words."""
    number = "the last one again" if seen.is_again else str(seen.snapshot.tick)
    rules = count(len(seen.layers), "rule")
    wishes, errors = count(len(seen.wishes), "effect"), count(len(seen.faults), "error")
    return f"{number} at {local(iso(seen.snapshot.now.at))}: {rules} in {duration_text(seen.took * 1e6)}, {wishes}, {errors}"


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
