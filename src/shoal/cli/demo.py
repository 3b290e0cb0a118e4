"""The command ``shoal demo``, which runs the bundled example."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import exits
from shoal.cli.options import Printing, with_options
from shoal.cli.signals import loading


@with_options
def demo(
    folder: Annotated[
        Path, typer.Argument(help="The folder for the demo's files; it must contain no other files.")
    ] = Path("shoal-demo"),
    *,
    printing: Printing,
) -> None:
    """Make a hospital table safe, and show an attack that succeeds before and fails after."""
    with loading():
        from shoal.cli.terminal.demo import show_demo
        from shoal.demo.run import demo as run

    with printing.progress() as progress:
        result = run(folder, progress=progress, written=lambda path: exits.written.append(str(path)))
    printing.show(result.as_dict, lambda: show_demo(result, folder))
