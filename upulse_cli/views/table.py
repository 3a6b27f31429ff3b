"""Tables for people: untrusted text in a cell is one line, and steers no terminal."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

from pulse_core.model.text import one_line
from upulse_cli.time_args import local

KEPT = (10, 8, 6)
"""Characters that columns of longer words keep at least, as far as there is room for all: 10 are a date. Headings
stay whole; where that leaves no room, rows are blocks."""

GAPS, RULED_GAPS = (2, 0), (3, 2)
"""Characters between two columns, and at both edges together."""


class PlainTable(Table):
    """A table with these columns.

    right: those of numbers, which stay whole; split: those of them of which only the words do, each on a line if need be,
    as a time below its number; whole: others that stay whole, since they are copied; the others take several lines where
    there is too little room, the widest ones first; ruled: a line below the headings, which are dim otherwise.
    """

    def __init__(
        self,
        *columns: str,
        right: Collection[str] = (),
        whole: Collection[str] = (),
        split: Collection[str] = (),
        ruled: bool = False,
    ) -> None:
        super().__init__(
            box=box.SIMPLE_HEAD if ruled else None, pad_edge=False, header_style="" if ruled else "dim"
        )
        self._split = split
        for name in columns:
            number = name in right
            self.add_column(
                name,
                justify="right" if number else "left",
                no_wrap=(number and name not in split) or name in whole,
                overflow="fold",
            )
            self._keep(self.columns[-1], Text(name))

    def line(self, *cells: object) -> None:
        """One more row."""
        texts = [cell_text(cell) for cell in cells]
        for column, text in zip(self.columns, texts, strict=True):
            self._keep(column, text)
        self.add_row(*texts)

    def _keep(self, column: Column, text: Text) -> None:
        words = [text] if column.no_wrap else text.split(" " if column.header in self._split else "\n")
        longest = max((word.cell_len for word in words), default=0)
        column.min_width = max(column.min_width or 0, longest)
        column.max_width = max(column.max_width or 0, text.cell_len)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        gap, edges = RULED_GAPS if self.box else GAPS
        room = options.max_width - gap * (len(self.columns) - 1) - edges
        for kept in KEPT:
            widths = [self._least(column, kept) for column in self.columns]
            if sum(widths) <= room:
                break
        else:
            return self._blocks()
        wanted = [column.max_width or 0 for column in self.columns]
        while sum(widths) < min(room, sum(wanted)):  # the narrowest of those that lack room first
            _, place = min((width, place) for place, width in enumerate(widths) if width < wanted[place])
            widths[place] += 1
        for column, width in zip(self.columns, widths, strict=True):
            column.width = width
        return super().__rich_console__(console, options)

    def _least(self, column: Column, kept: int) -> int:
        longest = column.min_width or 0
        is_kept = column.no_wrap or column.header in self._split
        return longest if is_kept else min(longest, max(kept, len(str(column.header))))

    def _blocks(self) -> RenderResult:
        """Each row as lines of heading and cell, for so little room that a table would leave out columns."""
        heads = [str(column.header) for column in self.columns]
        wide = max(map(len, heads), default=0) + 2
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            for head, cell in zip(heads, cells, strict=True):
                yield Text.assemble((head.ljust(wide), "dim"), cell if isinstance(cell, Text) else str(cell))
            yield Text()


def facts(said: Mapping[str, Any], names: Sequence[str], times: Collection[str] = ()) -> Table:
    """Those of these values that are there, each on a line. times: those that are moments, in ISO 8601."""
    drawn = Table.grid(padding=(0, 2))
    for name in names:
        value = said[name]
        if value not in (None, [], (), ""):
            words = ", ".join(value) if isinstance(value, list | tuple) else value
            words = ("no", "yes")[value] if isinstance(value, bool) else words
            words = local(words, date=True, named=True) if name in times else words
            drawn.add_row(Text(name.replace("_", " "), style="dim"), Text(one_line(words)))
    return drawn


def cell_text(cell: object) -> Text:
    """A `Text` as it is, None as a dash, anything else as one line of plain text."""
    return cell if isinstance(cell, Text) else Text(one_line("-" if cell is None else cell))
