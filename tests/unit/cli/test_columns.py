"""Tables on terminals of any width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from shoal.cli.columns import Columns


def shown(table: Columns, width: int, *, terminal: bool = False) -> str:
    out = io.StringIO()
    table.show(Console(file=out, width=width, force_terminal=terminal, highlight=False))
    return out.getvalue()


def people() -> Columns:
    table = Columns("name of a column", "records", "share", "why it is so", "", texts=(0, 3))
    table.add(
        "a very long name that goes on and on", "1,234,567", "12.3 %", "because it was said so by somebody", "holds"
    )
    table.add("short", "1", ">99.9 %", "", "FAILS")
    return table


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
def test_figures_are_never_cut_and_lines_never_too_long(width: int) -> None:
    text = shown(people(), width)
    assert all(len(line) <= width for line in text.splitlines())
    for figure in ("1,234,567", "12.3 %", ">99.9 %", "holds", "FAILS", "records", "share"):
        assert figure in text
    assert "…" not in text
    for word in ("very", "long", "name", "goes", "because", "said", "somebody"):
        assert word in text


def test_a_wide_terminal_has_one_table_and_a_narrow_one_continues_it() -> None:
    assert len(shown(people(), 120).splitlines()) == 3
    narrow = shown(people(), 40)
    assert narrow.count("name of a column") > 1
    assert narrow.count("short") == narrow.count("name of a column")


def test_colour_only_on_a_terminal() -> None:
    assert "\x1b" not in shown(people(), 80)
    assert "\x1b" in shown(people(), 80, terminal=True)


def test_names_neither_are_markup_nor_steer_the_terminal() -> None:
    table = Columns("a[b]c", "n")
    table.add("[red]x[/red]\x1b[31m\x07", "1")
    text = shown(table, 80)
    assert "[red]x[/red]\u241b[31m\u2407" in text
    assert "a[b]c" in text


def test_no_rows() -> None:
    assert shown(Columns("a", "b"), 80).split() == ["a", "b"]
