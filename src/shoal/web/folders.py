"""Which files of this computer the page may open: those in the folders that the user named, and no others."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import DataError, PolicyError
from shoal.text.bounded import read_bounded

if TYPE_CHECKING:
    from shoal.policy import Policy

TABLE_ENDINGS = (
    ".csv", ".tsv", ".txt", ".parquet", ".pq", ".xlsx", ".xls", ".sav", ".dta", ".sas7bdat", ".xpt",
    ".feather", ".arrow", ".jsonl", ".ndjson", ".duckdb",
)  # fmt: skip
MAX_LISTED = 500  # entries of a folder that are listed


@dataclass(frozen=True)
class Listing:
    """What a folder holds that can be opened."""

    folder: Path
    above: Path | None
    folders: tuple[Path, ...]
    tables: tuple[Path, ...]
    unlisted: int  # entries that are not listed


class Folders:
    """The folders that the user opened; links that lead out of them are refused too."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = tuple(dict.fromkeys(root.resolve() for root in roots))

    def __contains__(self, path: Path) -> bool:
        real = path.resolve()
        return any(real.is_relative_to(root) for root in self.roots)

    def path(self, text: str) -> Path:
        """The file or folder that a text names, without links, if it lies in a folder that the user opened."""
        try:
            real = (self.roots[0] / Path(text).expanduser()).resolve()
            inside = real in self
        except (OSError, RuntimeError, ValueError):
            inside = False
        if not inside:
            raise DataError(
                "this path is not in a folder that was opened",
                "start shoal web with the folder: shoal web --folder FOLDER",
            )
        return real

    def table(self, text: str) -> Path:
        """The same of a table, which may be a folder of files: none of these may be a link that leads out."""
        real = self.path(text)
        try:
            out = real.is_dir() and any(entry.is_symlink() and entry not in self for entry in real.rglob("*"))
        except (OSError, RuntimeError):
            raise DataError("the folder cannot be read") from None
        if out:
            raise DataError(
                "the folder holds a link to something that is not in a folder that was opened",
                "remove the link, or start shoal web with the folder that it leads to",
            )
        return real

    def listing(self, text: str) -> Listing:
        """The tables and folders in a folder; hidden ones and links that lead elsewhere are left out."""
        folder = self.path(text)
        try:
            entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith(".") and entry in self)
            folders = tuple(entry for entry in entries if entry.is_dir())
            tables = tuple(entry for entry in entries if entry.suffix.lower() in TABLE_ENDINGS and entry.is_file())
        except (OSError, RuntimeError):
            raise DataError("the folder cannot be read") from None
        above = folder.parent if folder.parent in self else None
        unlisted = max(0, len(folders) - MAX_LISTED) + max(0, len(tables) - MAX_LISTED)
        return Listing(folder, above, folders[:MAX_LISTED], tables[:MAX_LISTED], unlisted)

    def policies(self) -> tuple[Path, ...]:
        """Policies in the opened folders, the newest first; a TOML file that is none is left out."""
        dated = []
        for root in self.roots:
            try:
                files = [path for path in root.glob("*.toml") if path.is_file() and path in self]
                dated += [(path.stat().st_mtime, path) for path in files if path.stat().st_size < 2**20]
            except (OSError, RuntimeError):
                continue
        newest = [path for _, path in sorted(dated, reverse=True)[:50]]
        return tuple(path for path in newest if _is_policy(path))[:10]

    def require_files(self, policy: Policy) -> None:
        """A policy may name files; it must not lead out of the folders either."""
        for path in policy.files:
            if path not in self:
                raise PolicyError(
                    "the policy names a file that is not in a folder that was opened",
                    "start shoal web with its folder: shoal web --folder FOLDER",
                )


def _is_policy(path: Path) -> bool:
    """Return whether a file looks like a policy; it is validated when it is used."""
    try:
        fields = tomllib.loads(read_bounded(path).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(fields.get("columns"), dict) and bool({"require", "preset"} & set(fields))
