"""Check whether files can be written, before the long computation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from shoal.cli.signals import loading
from shoal.errors import OutputError


def check_different(targets: Mapping[str, str | Path | None]) -> None:
    """Require different files: a recoding, which lists values from the data, must not replace a published file."""
    purposes: dict[Path, str] = {}
    for purpose, path in targets.items():
        if path is not None and (before := purposes.setdefault(_resolved(path), purpose)) != purpose:
            raise OutputError(f"{path} is given for both {before} and {purpose}", "use two different files")


def _resolved(path: str | Path) -> Path:
    """Return the path without links, as far as they can be resolved: not in a loop, nor from a deleted folder."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError):
        return Path(path)


def check_text_target(path: Path | None, force: bool, sources: Iterable[Path]) -> None:
    """Raise the errors that ``write_text`` would raise, before the long computation."""
    if path is None:
        return
    with loading():
        from shoal.engines.formats.atomic_files import check_place, output_errors
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
    """Check the target of a plot, whose file name gives its format."""
    if path is not None:
        with loading():
            from shoal.report.svg import check_chart_file

        check_chart_file(path)
        check_text_target(path, force, sources)
