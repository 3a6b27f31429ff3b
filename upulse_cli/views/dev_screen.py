"""`upulse dev` as a live screen: what is loaded, what each rule did last, its wishes, and what is wrong."""

from collections import deque
from collections.abc import Iterator

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
)
from pulse_core.model.text import one_line
from pulse_core.ports.engine import EngineFault
from upulse_cli.time_args import took
from upulse_cli.views.dev import began, sensed, summary, wished
from upulse_cli.views.explain import COLOURS
from upulse_cli.views.table import PlainTable

KEPT = 6
STATES = {"new": "green", "open": "dim", "held": "yellow", "refused": "red"}


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
    table = PlainTable("rule", "outcome", "took", "notes", right=("took",), fold=("notes",))
    for layer in seen.layers:
        outcome = Text(layer.outcome, style=COLOURS.get(layer.outcome, ""))
        table.line(layer.rule, outcome, took(layer.took_us), "; ".join(layer.notes))
    return table
