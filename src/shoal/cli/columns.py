"""Aligned tables for a terminal of any width: texts wrap, figures are never cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shoal.text.figures import visible

if TYPE_CHECKING:
    from shoal.report.rows import Grid

GAP = 2
NARROWEST = 16  # characters of a text that wraps
console = Console(highlight=False)
# Nothing is green beside a finding; the headline is, where all is well.
STYLES = {"FAILS": "bold red", "CANNOT BE DETERMINED": "bold yellow"}


def text(words: str, style: str = "") -> Text:
    """Return a plain text: brackets in a name are not markup, and control characters do not reach the terminal."""
    return Text(visible(words), style=style)


def show_grid(grid: Grid, *, narrow: bool = False) -> None:
    """Print the rows of a result; what is bad news stands in capitals. ``narrow`` breaks the heads between words."""
    head = (name.replace(" ", "\n") if narrow else name for name in grid.head)
    table = Columns(*head, texts=grid.texts)
    for row in grid.rows:
        *cells, last = row.cells
        table.add(*cells, last.upper() if row.fails else last)
    table.show(console)


class Columns:
    """A table whose first column names its lines; if it is too wide, it is continued below."""

    def __init__(self, *head: str, texts: Sequence[int] = (0,)) -> None:
        self.head = head
        self.texts = texts  # left-aligned columns that may wrap
        self.rows: list[tuple[str, ...]] = []

    def add(self, *cells: str) -> None:
        """Add a line to the table."""
        self.rows.append(cells)

    def show(self, console: Console) -> None:
        """Print the table to the console."""
        for i, part in enumerate(self._parts(console.width)):
            if i:
                console.print()
            console.print(self._table(part))

    def _parts(self, width: int) -> Iterator[list[int]]:
        """Split the columns into parts that fit the width; the first column is in every part."""
        part: list[int] = [0]
        for j in range(1, len(self.head)):
            if len(part) > 1 and sum(self._min_width(i) + GAP for i in [*part, j]) - GAP > width:
                yield part
                part = [0]
            part.append(j)
        yield part

    def _min_width(self, j: int) -> int:
        cells = (self.head[j], *(row[j] for row in self.rows))
        longest = max(cell_len(line) for cell in cells for line in cell.split("\n"))
        return min(longest, NARROWEST) if j in self.texts else longest

    def _table(self, part: Sequence[int]) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
        for j in part:
            left = j in self.texts
            table.add_column(
                text(self.head[j]),
                justify="left" if left else "right",
                overflow="fold",
                no_wrap=not left,
                header_style="dim",
                vertical="top",
            )
        for row in self.rows:
            table.add_row(*(text(row[j], STYLES.get(row[j], "")) for j in part))
        return table
