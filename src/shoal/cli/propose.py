"""``shoal inspect`` and ``shoal hierarchy``: look at a table and propose a policy."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import exits
from shoal.cli.options import Force, Printing, Reading, Rows, names_in, numbers_in, with_options
from shoal.cli.signals import loading
from shoal.cli.targets import check_plot_target, check_text_target


@with_options
def inspect(
    data: Rows,
    *,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the policy to this file.")] = None,
    known: Annotated[
        str | None, typer.Option(help="Columns that outsiders know (quasi-identifiers), such as age,zip.")
    ] = None,
    sensitive: Annotated[str | None, typer.Option(help="Sensitive columns, such as disease.")] = None,
    plain: Annotated[str | None, typer.Option(help="Columns to publish as they are, such as ward.")] = None,
    keep: Annotated[
        str | None, typer.Option(help="Columns to keep in as much detail as possible, such as age,stage.")
    ] = None,
    purpose: Annotated[
        str,
        typer.Option(
            "--for",
            help="analysis: each class is generalized separately, with the smallest loss. tables: the same bins in "
            "the whole column, for tables and joins; see --keep.",
        ),
    ] = "analysis",
    reading: Reading,
    printing: Printing,
    force: Force = False,
) -> None:
    """Find identifiers, quasi-identifiers and hierarchies; propose a policy to edit."""
    with loading():
        from shoal.cli.terminal.proposals import show_inspection
        from shoal.engines.formats.atomic_files import write_text
        from shoal.inspection.inspect import inspect as look

    check_text_target(output, force, [Path(data)])
    rows = reading.opened(data)
    inspection = look(
        rows,
        known=names_in(known),
        sensitive=names_in(sensitive),
        plain=names_in(plain),
        keep=names_in(keep),
        purpose=purpose,
    )
    if output is not None:
        write_text(output, inspection.toml(), force=force)
        exits.written.append(str(output))
    printing.show(inspection.as_dict, lambda: show_inspection(inspection, (*rows.notes, *inspection.notes), output))


@with_options
def hierarchy(
    data: Rows,
    column: Annotated[str, typer.Argument(help="The column.", show_default=False)],
    *,
    policy: Annotated[Path | None, typer.Option("-p", "--policy", help="Show the hierarchy in this policy.")] = None,
    file: Annotated[Path | None, typer.Option(help="Show the hierarchy in this file.")] = None,
    steps: Annotated[str | None, typer.Option(help="Intervals of these widths, such as 5,10,20.")] = None,
    boundaries: Annotated[str | None, typer.Option(help="Intervals that begin here, such as 0,18,65.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(help="mask, dates, times, flat; icd-10, isco-08, nace, country; or a scale such as frequency."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Write the hierarchy to a CSV file for a policy. It lists values of the data."),
    ] = None,
    chart: Annotated[Path | None, typer.Option(help="Draw the hierarchy, as an .svg file.")] = None,
    labels: Annotated[int, typer.Option(help="The number of labels to show per level.", min=1)] = 8,
    reading: Reading,
    printing: Printing,
    force: Force = False,
) -> None:
    """Show the levels of a column's hierarchy with records per label: values of the data, for its holder only."""
    with loading():
        from shoal.cli.terminal.proposals import show_hierarchy
        from shoal.inspection.preview import hierarchy as look

    check_text_target(save, force, [Path(data)])
    check_plot_target(chart, force, [Path(data)])
    widths = {"steps": numbers_in(steps), "boundaries": numbers_in(boundaries)}
    preview = look(reading.opened(data), column, policy=policy, given=file, kind=kind, **widths)
    if save is not None:
        preview.save(save, force=force)
        exits.written.append(str(save))
    if chart is not None:
        preview.chart().save(chart, force=force)
        exits.written.append(str(chart))
    printing.show(preview.as_dict, lambda: show_hierarchy(preview, labels, save))
