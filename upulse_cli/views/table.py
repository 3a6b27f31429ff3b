"""Tables for people: untrusted text in a cell is one line, and steers no terminal."""

from collections.abc import Collection

from rich import box
from rich.table import Table
from rich.text import Text

from pulse_core.model.text import one_line


class PlainTable(Table):
    """A table with these columns. right: those of numbers; fold: those that may take several lines; ruled: a line
    below the headings, which are dim otherwise."""

    def __init__(
        self, *columns: str, right: Collection[str] = (), fold: Collection[str] = (), ruled: bool = False
    ) -> None:
        super().__init__(
            box=box.SIMPLE_HEAD if ruled else None, pad_edge=False, header_style="" if ruled else "dim"
        )
        for name in columns:
            folds = name in fold
            self.add_column(
                name,
                justify="right" if name in right else "left",
                no_wrap=not folds,
                overflow="fold" if folds else "ellipsis",
            )

    def line(self, *cells: object) -> None:
        """One more row."""
        self.add_row(*map(cell_text, cells))


def cell_text(cell: object) -> Text:
    """A `Text` as it is, None as a dash, anything else as one line of plain text."""
    return cell if isinstance(cell, Text) else Text(one_line("-" if cell is None else cell))
