"""What the page works on: tables that were opened, drafts of policies, and runs with their releases.

A draft never changes: an edit makes another, with an address of its own. So the browser's Back is an undo.
"""

from __future__ import annotations

import copy
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.engines.temporary import private_folder
from shoal.errors import ShoalError
from shoal.web.folders import Folders
from shoal.web.jobs import Job, Jobs

if TYPE_CHECKING:
    from shoal.attacks.risk import Attacks
    from shoal.engines.base import Engine
    from shoal.inspection.inspection import Inspection
    from shoal.models.verdict import Verdicts
    from shoal.policy import Policy
    from shoal.release import Release
    from shoal.search.full_domain.visits import Visits

MAX_DRAFTS = 2_000  # that are kept
MAX_RELEASES = 8  # that stay in memory
MAX_PREVIEWS = 8  # of hierarchies
N_BARS = 24  # of the small distribution of a column


@dataclass(frozen=True)
class Settings:
    """What the command line has said."""

    engine: str = "auto"
    memory: str | None = None
    separator: str | None = None
    encoding: str | None = None
    header: bool | None = None


@dataclass(frozen=True, eq=False)
class Opened:
    """A table that was opened."""

    number: int
    name: str  # as the page shows it
    argument: str  # as a command names it; of a database without its password
    engine: Engine
    inspection: Inspection
    options: tuple[str, ...] = ()  # beside the argument
    setup_command: str = ""  # a command that makes the table, where one does
    frequencies: Mapping[str, Sequence[int]] = field(default_factory=dict)  # of the most frequent values, per column
    sample: Sequence[Sequence[str]] = ()  # the first rows, shown when asked

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.inspection.columns]


@dataclass(frozen=True, eq=False)
class Draft:
    """A policy being edited, as plain fields: it may still lack something."""

    number: int
    table: Opened
    fields: Mapping[str, Any]
    folder: Path
    parent: int | None = None
    change: str = ""  # what the last edit did

    @property
    def policy(self) -> Policy:
        """The policy; raises PolicyError where something is missing or contradicts."""
        from shoal.policy import Policy  # which brings most of shoal: the first screen does without

        return Policy.of(copy.deepcopy(dict(self.fields)), self.folder)

    @property
    def problem(self) -> ShoalError | None:
        """What is wrong with it."""
        try:
            _ = self.policy
        except ShoalError as error:
            return error
        return None

    def column(self, name: str) -> Mapping[str, Any]:
        """The fields of a column."""
        fields: Mapping[str, Any] = self.fields["columns"].get(name, {"role": "plain"})
        return fields


@dataclass(eq=False)
class WebRun:
    """A release with its search, its attacks and its files."""

    number: int
    draft: Draft
    release: Release | None
    seconds: float
    visits: Visits = field(default_factory=lambda: _visits())
    attacks: Attacks | None = None
    since: int | None = None  # the run that it was taken from
    files: dict[str, Path] = field(default_factory=dict)
    certificate: dict[str, Any] | None = None
    figures: dict[str, Any] = field(default_factory=dict)  # for the list of runs
    cache: dict[str, Any] = field(default_factory=dict)  # what screens have computed of it


def _visits() -> Visits:
    from shoal.search.full_domain.visits import Visits  # which brings NumPy: the first screen does without

    return Visits()


class Workspace:
    """The state of one server; its private folder is removed when it stops."""

    def __init__(self, roots: list[Path], settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._private = private_folder("shoal-web-")
        self.folder = self._private.path
        self.folders = Folders(roots)
        self.jobs = Jobs()
        self.stopping = threading.Event()
        self.tables: dict[int, Opened] = {}
        self.drafts: dict[int, Draft] = {}
        self.runs: dict[int, WebRun] = {}
        self.verdicts: dict[str, Verdicts | ShoalError] = {}  # of tables as they stand
        self.judging: dict[str, Job] = {}
        self.previews: dict[str, Any] = {}  # of hierarchies, the last few
        self._lock = threading.Lock()
        self._last = 0

    def close(self) -> None:
        """Stop the work and remove everything that was kept on disk."""
        self.jobs.close()
        self._private.remove()

    def _next(self) -> int:
        with self._lock:
            self._last += 1
            return self._last

    def new_folder(self) -> Path:
        """Return a new private folder."""
        return Path(tempfile.mkdtemp(dir=self.folder))

    def add_table(self, make: Callable[[int], Opened]) -> Opened:
        """Keep a table in the workspace."""
        opened = make(self._next())
        self.tables[opened.number] = opened
        return opened

    def add_draft(self, table: Opened, fields: Mapping[str, Any], folder: Path) -> Draft:
        """The first draft for a table."""
        return self._keep(Draft(self._next(), table, fields, folder))

    def edit(self, draft: Draft, change: str, edited: Callable[[dict[str, Any]], None]) -> Draft:
        """A new draft that differs; the same where nothing does."""
        fields = copy.deepcopy(dict(draft.fields))
        edited(fields)
        if fields == draft.fields:
            return draft
        return self._keep(Draft(self._next(), draft.table, fields, draft.folder, draft.number, change))

    def _keep(self, draft: Draft) -> Draft:
        with self._lock:
            self.drafts[draft.number] = draft
            for number in list(self.drafts)[:-MAX_DRAFTS]:
                del self.drafts[number]
        return draft

    def keep_preview(self, key: str, preview: Any) -> None:
        """Keep what a job has found out about a hierarchy; the oldest goes."""
        with self._lock:
            self.previews[key] = preview
            for old in list(self.previews)[:-MAX_PREVIEWS]:
                del self.previews[old]

    def add_run(self, draft: Draft, release: Release, seconds: float) -> WebRun:
        """Keep a release; of older ones only the figures stay."""
        run = WebRun(self._next(), draft, release, seconds)
        with self._lock:
            self.runs[run.number] = run
            in_memory = [other for other in self.runs.values() if other.release is not None]
            for other in in_memory[:-MAX_RELEASES]:
                other.release = None
                other.cache.clear()
        return run
