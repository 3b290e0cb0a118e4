"""The ledger of released tables: what an intruder already has, so that the next table is judged together with it.

It holds what was asked for (columns, limits of bands, conditions, the statistics) and, for every published cell, its
group and the published figures. It holds no hidden figure, no record, no person and no digest of the data: what it
says has been published, and the rest is counted again from the data when the next table is checked. It is readable by
its owner only, because it shows all releases side by side. It is written before the table is, so a crash in between
leaves a table too many in the ledger, never one too few.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.engines.formats.atomic_files import write_text
from shoal.errors import DataError, OutputError
from shoal.results.output.request import Key, TableRequest
from shoal.text.bounded import read_bounded
from shoal.text.jsonable import read_json

FORMAT = "shoal output ledger 1"


@dataclass(frozen=True)
class Earlier:
    """A table that was released before: what was asked for, and the published figures of its cells."""

    request: TableRequest
    figures: dict[tuple[Key, tuple[bool, ...]], dict[str, float]]  # by labels and which columns are kept

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        cells = [
            {"group": [label if kept_columns else 0 for label, kept_columns in zip(*key, strict=True)], **published}
            for key, published in self.figures.items()
        ]  # 0 stands for a total; labels are texts, or null where a value is missing
        return {**self.request.as_dict(), "cells": cells}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Earlier:
        """Read an entry of a ledger."""
        request = TableRequest.checked(
            fields["by"],
            fields["bands"],
            fields["where"],
            fields["value"],
            fields["statistics"],
            fields.get("on", ()),
            fields.get("categories", ()),
        )
        figures = {}
        for cell in fields["cells"]:
            group = cell.pop("group")
            if len(group) != len(request.names) or not all(
                part in (0, None) or isinstance(part, str) for part in group
            ):
                raise ValueError("a group does not fit its columns")
            key = tuple(None if part == 0 else part for part in group)
            figures[key, tuple(part != 0 for part in group)] = {name: float(figure) for name, figure in cell.items()}
        return cls(request, figures)


def read_ledger(path: str | Path | None) -> list[Earlier]:
    """Return what was released before; nothing if there is no ledger yet."""
    if path is None or not Path(path).exists():
        return []
    try:
        document = read_json(read_bounded(path).decode())
        if document["format"] != FORMAT:
            raise ValueError("another format")
        return [Earlier.from_dict(entry) for entry in document["releases"]]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, DataError):
        raise DataError(
            f"{path} is not a ledger of released tables, or is damaged; nothing is released",
            "restore it from a copy: without it, nobody can tell what two releases give away together",
        ) from None


def enter(path: str | Path, judged: list[Earlier], entry: Earlier) -> None:
    """Add a release to the ledger, if it still says what was ``seen`` when the table was checked."""
    path = Path(path)
    with _locked_ledger(path):
        if [release.as_dict() for release in read_ledger(path)] != [release.as_dict() for release in judged]:
            raise OutputError(
                f"another table was entered into {path} since this one was checked; nothing was released",
                "check the table again, so that it is judged together with the other one",
            )
        document = {"format": FORMAT, "releases": [release.as_dict() for release in [*judged, entry]]}
        write_text(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n", force=True, private=True)


@contextlib.contextmanager
def _locked_ledger(path: Path) -> Iterator[None]:
    """Keep other processes from entering anything meanwhile; a killed process leaves no lock behind."""
    try:
        import fcntl
    except ImportError:  # not on Windows: there, the comparison in ``enter`` has to do
        yield
        return
    try:
        lock = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
