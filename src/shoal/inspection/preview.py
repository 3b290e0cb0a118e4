"""Preview the hierarchy of a column before a policy uses it: its levels, their labels and record counts.

A preview shows values of the data to the owner of the data: that is its purpose. Messages and errors still show none.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from shoal.engines.data import Data
from shoal.engines.formats.atomic_files import write_text
from shoal.engines.opening import engine_of
from shoal.errors import PolicyError, no_column
from shoal.hierarchies import builders
from shoal.hierarchies.builders import File, Spec
from shoal.hierarchies.description import Description
from shoal.hierarchies.hierarchy import Hierarchy, Label
from shoal.hierarchies.spelling import guess
from shoal.inspection.hierarchy_proposal import propose
from shoal.notation import codec
from shoal.policy import PolicySource, policy_of
from shoal.tables.frequency import Counts
from shoal.text import toml
from shoal.text.showing import represent

SPEC: TypeAdapter[Any] = TypeAdapter(Spec)
# What a kind stands for where nothing else is said.
KINDS: dict[str, dict[str, Any]] = {
    "mask": {"mask": "right"},
    "dates": {"dates": ["month", "year", "decade"]},
    "times": {"times": ["quarter-hour", "hour", "quarter-day"]},
    "flat": {"flat": True},
    **{name: {"codes": name} for name in ("icd-10", "isco-08", "nace", "country")},
    **{name: {"ordered": name} for name in ("agreement", "frequency", "amount", "size", "quality", "satisfaction",
                                            "severity", "education", "marks", "numbered", "ranges")},
}  # fmt: skip


@dataclass(frozen=True)
class Level:
    """One level: its labels in order, and the number of records of each."""

    number: int
    labels: tuple[Label, ...]
    records: tuple[int, ...]

    @property
    def smallest(self) -> int:
        """The number of records of the rarest label."""
        return min((n for n in self.records if n), default=0)


@dataclass(frozen=True, eq=False)
class Preview:
    """The hierarchy of a column over its values; printing it shows none of them."""

    column: str
    spec: Description
    hierarchy: Hierarchy
    counts: Counts  # records of each leaf
    told: str = ""  # what the values were taken for, where the hierarchy was proposed
    missing: int = 0  # records without a value

    def __repr__(self) -> str:
        return f"<Preview of {self.hierarchy!r}>"

    @property
    def records(self) -> int:
        """The number of records with a value."""
        return int(self.counts.sum())

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The levels, from the values to the top."""
        hierarchy, levels = self.hierarchy, []
        for level in range(hierarchy.n_levels):
            sums = np.zeros(hierarchy.cardinality(level), np.int64)
            np.add.at(sums, hierarchy.table[level], self.counts)
            levels.append(Level(level, hierarchy.labels[level], tuple(sums.tolist())))
        return tuple(levels)

    @property
    def fields(self) -> Any:
        """The hierarchy as a policy writes it."""
        return self.spec.model_dump(mode="json", exclude_defaults=True)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, including values of the data."""
        return {
            "column": self.column,
            "hierarchy": self.fields,
            "taken_for": self.told,
            "records": self.records,
            "missing": self.missing,
            "levels": [
                {
                    "level": level.number,
                    "labels": len(level.labels),
                    "smallest": level.smallest,
                    "records": [list(pair) for pair in zip(level.labels, level.records, strict=True)],
                }
                for level in self.levels
            ],
        }

    def policy_line(self, file: str | None = None) -> str:
        """The line of a policy that names the hierarchy."""
        fields: dict[str, Any] = {"role": "quasi", "hierarchy": self.fields if file is None else file}
        return f"{toml.key(self.column)} = {toml.value(fields | ({'min_level': 1} if file and self._coded else {}))}"

    @property
    def _coded(self) -> bool:
        """Whether level 0 already merges values, as top-coding does; a file has the values themselves there."""
        return self.hierarchy.labels[0] != self.hierarchy.leaves

    def to_csv(self) -> str:
        """Return the hierarchy in ARX's layout: a line per value, from the value to the top."""
        hierarchy, out = self.hierarchy, io.StringIO()
        writer = csv.writer(out, delimiter=";", lineterminator="\n")
        for leaf, text in enumerate(hierarchy.leaves):
            labels = [hierarchy.label(level, hierarchy.table[level, leaf]) for level in range(hierarchy.n_levels)]
            writer.writerow([text, *(labels if self._coded else labels[1:])])
        return out.getvalue()

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a hierarchy file for a policy, after reading it back as a policy would, including C1 and C2."""
        text, target = self.to_csv(), Path(path)
        again = File(path=target.name).of_text(self.column, text)
        if again.leaves != self.hierarchy.leaves or again.labels[-1] != self.hierarchy.labels[-1]:
            raise PolicyError(
                f"column {self.column!r}: its values do not survive being written to a hierarchy file and read back",
                "do some of them contain line breaks or surrounding spaces?",
            )
        write_text(target, text, force=force, private=True)

    def chart(self) -> Any:
        """Draw every level as a row of boxes, as wide as the record counts of the labels, with the top above.

        A notebook displays the chart; ``save`` writes it as SVG.
        """
        return represent(self, "chart")


def hierarchy(
    data: Data,
    column: str,
    *,
    policy: PolicySource | None = None,
    given: Mapping[str, Any] | str | Path | None = None,
    steps: Sequence[float] = (),
    boundaries: Sequence[float] = (),
    kind: str | None = None,
) -> Preview:
    """Preview the hierarchy of a column: the given one, that of the policy, or else the proposal.

    Parameters
    ----------
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table, whose rows stay in place.
    column
        The column.
    policy
        A ``Policy``, the path of a TOML file, or a dict.
    given
        A hierarchy as a policy writes it, or the path of a hierarchy file.
    steps
        The widths of intervals.
    boundaries
        Where intervals begin.
    kind
        One of mask, dates, times, flat, a classification or a scale.

    Returns
    -------
    Preview
        The labels on each level, with the records of each, and the line for a policy.

    Raises
    ------
    HierarchyError
        If the hierarchy does not fit the values of the column.
    PolicyError
        If the policy, or an argument, cannot be applied to the table.
    DataError
        If the table cannot be read, or lacks a column.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "disease": ["flu", "flu", "hiv", "flu"]})
    >>> found = shoal.hierarchy(people, "age", steps=[5, 10])
    >>> [level.labels for level in found.levels]
    [('31', '34', '36', '38'), ('30-34', '35-39'), ('30-39',), ('*',)]
    >>> found.policy_line()
    'age = { role = "quasi", hierarchy = { intervals = [5, 10] } }'
    """
    arguments = {"policy": policy, "given": given, "steps": steps, "boundaries": boundaries, "kind": kind}
    ways = [name for name, argument in arguments.items() if argument]
    if len(ways) > 1:
        raise PolicyError(f"a hierarchy is specified in {len(ways)} ways: {', '.join(ways)}", "choose one")
    engine = engine_of(data)
    if column not in engine.columns:
        raise no_column("the table", [column], engine.columns, f"columns: {', '.join(map(repr, engine.columns))}")
    wanted = None if policy is None else policy_of(policy)
    if wanted is not None and column not in wanted.columns:
        raise no_column("the policy", [column], wanted.columns)
    engine = engine if wanted is None else engine.spelled({column: wanted.spellings[column]})
    rows = engine.tally([column])
    coded = rows.coded(column)
    if wanted is None and not (spelling := guess(coded.texts)).is_plain:
        rows = rows.spelled({column: spelling})
        coded = rows.coded(column)
    counts = _counts(coded, rows.weights)
    spec, values_kind = _spec(column, given, steps, boundaries, kind), ""
    folder = Path(given).parent if isinstance(given, str | Path) else Path()
    if wanted is not None:
        spec, folder = wanted.columns[column].hierarchy or builders.Flat(), wanted.folder
    elif spec is None:
        proposal = propose(column, coded.texts, counts)
        spec, values_kind = proposal.hierarchy, proposal.told
    built = builders.build(column, spec, coded.texts, nulls=False, uncovered="error", folder=folder)
    of_leaf = np.zeros(len(built.leaves), np.int64)
    np.add.at(of_leaf, built.encode(coded.texts), counts)
    return Preview(column, spec, built, of_leaf, values_kind, rows.n_records - int(counts.sum()))


def _counts(coded: codec.Coded, weights: Counts | None) -> Counts:
    filled = coded.codes >= 0
    records = np.zeros(len(coded.texts), np.int64)
    np.add.at(records, coded.codes[filled], 1 if weights is None else weights[filled])
    return records


def _spec(
    column: str,
    description: Mapping[str, Any] | str | Path | None,
    steps: Sequence[float],
    boundaries: Sequence[float],
    kind: str | None,
) -> Any:
    """Return the requested description; None for the proposal."""
    fields: Any = description
    if isinstance(description, str | Path):
        fields = Path(description).name
    elif steps:
        fields = {"intervals": list(steps)}
    elif boundaries:
        fields = {"boundaries": list(boundaries)}
    elif kind is not None:
        if kind not in KINDS:
            raise PolicyError(f"kind: unknown kind {kind!r}", f"kinds: {', '.join(KINDS)}")
        fields = KINDS[kind]
    if fields is None:
        return None
    try:
        return SPEC.validate_python(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise PolicyError(f"column {column!r}: hierarchy: {first['msg'].removeprefix('Value error, ')}") from None
