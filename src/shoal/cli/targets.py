"""Whether files can be written, told before the long work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from shoal.cli.signals import loading
from shoal.errors import OutputError


def check_different(targets: Mapping[str, str | Path | None]) -> None:
    """Each file has one use: a recoding, which lists values of the data, must not replace what is published."""
    used: dict[Path, str] = {}
    for what, path in targets.items():
        if path is not None and (before := used.setdefault(_resolved(path), what)) != what:
            raise OutputError(f"{path} is given for both {before} and {what}", "use two different files")


def _resolved(path: str | Path) -> Path:
    """The path without links, as far as they can be followed: not in a circle, nor from a folder that was deleted."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError):
        return Path(path)


def check_text_target(path: Path | None, force: bool, sources: Iterable[Path]) -> None:
    """Raise what ``write_text`` would, before the long work."""
    if path is None:
        return
    with loading():
        from shoal.engines.files.formats import check_place, output_errors
        from shoal.release import refuse_to_overwrite

    for source in sources:
        refuse_to_overwrite(source, path)
    with output_errors(path):
        if path.is_dir():
            raise OutputError(f"{path} is a directory", "specify a file")
        if path.exists() and not force:
            raise OutputError(f"{path} already exists", "choose another name, or use --force to overwrite it")
        if not path.parent.is_dir():
            raise OutputError(f"{path}: the folder does not exist", "create it first")
    check_place(path, force)


def check_plot_target(path: Path | None, force: bool, sources: Iterable[Path]) -> None:
    """The same for a plot, whose name tells its kind."""
    if path is not None:
        with loading():
            from shoal.report.plots import check_plot

        check_plot(path)
        check_text_target(path, force, sources)
