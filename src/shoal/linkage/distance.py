"""Distance-based record linkage: every record is linked to the nearest one of the other file.

D. Pagliuca, G. Seri, "Some results of individual ranking method on the system of enterprise accounts annual survey",
SDC project, 1999; J. Domingo-Ferrer, V. Torra, "A quantitative comparison of disclosure control methods for microdata",
2001. The distance is Euclid's on scaled numbers; a category that differs counts as one standard deviation.
Finds  the nearest records exactly; where t are equally near, a link to the right one is worth 1/t.
Costs  distinct known × distinct released tuples at the most; one-to-one assignment grows with the cube of the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.errors import DataError
from shoal.linkage.columns import Files, LinkedFile, On, Truth, side_by_side
from shoal.linkage.measure import Categories, DistanceTerm, ScaledBy, distance_terms
from shoal.linkage.nearest import Distinct, nearest, squared_between
from shoal.policy import PolicySource
from shoal.tables.frequency import Floats, RowNumbers
from shoal.tables.wildcard import Nulls

ASSIGNABLE = 2**24  # pairs of records that can be assigned one to one: 4,096 by 4,096, minutes at the worst


@dataclass(frozen=True, eq=False)
class DistanceLinkage:
    """Results per record of the file that was linked: the known file, or the release."""

    columns: tuple[str, ...]
    distance: Floats  # of the nearest records of the other file
    ties: NDArray[np.int64]  # how many are as near
    rows: RowNumbers  # the first of them
    of: int | None  # linked records whose person is in the other file; None where the truth is not known
    correct: float | None  # links to the right record, one among t equally near counting 1/t
    singled_out: int | None  # right links without a tie
    assigned: RowNumbers | None  # one to one: the other file's row, -1 where it has none left
    assigned_correct: float | None

    @property
    def risk(self) -> float | None:
        """The share of people linked correctly."""
        return None if self.of is None or self.correct is None else self.correct / max(1, self.of)

    @property
    def assigned_risk(self) -> float | None:
        """The same for the one-to-one assignment."""
        has_truth = self.of is not None and self.assigned_correct is not None
        return float(self.assigned_correct or 0) / max(1, self.of or 0) if has_truth else None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "columns": list(self.columns),
            "linked": len(self.rows),
            "unique": int((self.ties == 1).sum()),
            "of": self.of,
            "correct": self.correct,
            "singled_out": self.singled_out,
            "risk": self.risk,
            "assigned_correct": self.assigned_correct,
            "assigned_risk": self.assigned_risk,
        }


def distance_linkage(
    known: LinkedFile,
    release: LinkedFile,
    *,
    on: On = None,
    numeric: Sequence[str] | None = None,
    policy: PolicySource | None = None,
    original: LinkedFile | None = None,
    scale: ScaledBy = "own",
    categories: Categories = "equal",
    weights: Mapping[str, float] | None = None,
    nulls: Nulls = "category",
    per: Literal["known", "released"] = "known",
    one_to_one: bool = False,
    truth: Truth = None,
    id: str | None = None,
) -> DistanceLinkage:
    """Link each known record to the nearest released ones, or each released record with ``per="released"``.

    ``scale="own"`` scales the numbers of each file by its own mean and standard deviation, ``"original"`` both files by
    those of ``original`` (of the known file where it is not given). A column with ranges is always scaled so. A number
    within a released range is at distance 0, one outside is as far as the nearest end. ``categories="hierarchy"`` takes
    the level of the nearest common ancestor, by the height of the policy's hierarchy, ``"equal"`` 0 or 1; a released
    label, set or mask is at 0 from all it stands for, and ``*`` from everything. With ``nulls="category"`` a null is a
    value of its own, at 1 from the others; with ``"wildcard"`` at 0 from all.

    ``truth`` gives the released row of each known record, -1 for none, or is ``"position"``: row i belongs to row i;
    or ``id`` names a column of both files that tells. ``one_to_one`` also assigns every record to another one so that
    the sum of squared distances is least.
    """
    files = side_by_side(known, release, on=on, numeric=numeric, policy=policy, original=original, truth=truth, id=id)
    measured = distance_terms(files.columns, scale=scale, nulls=nulls, categories=categories, weights=weights)
    left, right = files.codes
    owners = files.owners
    if per == "released":
        left, right, measured = right, left, [part.swapped for part in measured]
        owners = None if owners is None else _inverse(owners, files)
    elif per != "known":
        raise DataError("per: must be known or released")
    mine, theirs = Distinct.from_codes(left), Distinct.from_codes(right)
    matches = nearest(mine, theirs, measured)
    assigned = _assigned(mine, theirs, measured) if one_to_one else None
    n_people = correct = singled_out = assigned_correct = None
    if owners is not None:
        people = np.flatnonzero(owners >= 0)
        right_ones = matches.holds_at(people, squared_between(measured, left[people], right[owners[people]]))
        n_people, correct = len(people), float((right_ones / matches.ties[people]).sum())
        singled_out = int((right_ones & (matches.ties[people] == 1)).sum())
        if assigned is not None:
            assigned_correct = _credit(assigned[people], owners[people], theirs)
    return DistanceLinkage(
        files.names,
        np.sqrt(matches.squared),
        matches.ties,
        matches.rows,
        n_people,
        correct,
        singled_out,
        assigned,
        assigned_correct,
    )


def _inverse(owners: RowNumbers, files: Files) -> RowNumbers:
    """Return for each released record the known record of the same person."""
    people = np.flatnonzero(owners >= 0)
    if repeated := len(people) - len(np.unique(owners[people])):
        raise DataError(
            f"truth: {repeated} known records share their released record with another one",
            'link with per="known", or remove the records that represent the same person twice',
        )
    inverse = np.full(files.n_released, -1, np.int64)
    inverse[owners[people]] = people
    return inverse


def _assigned(left: Distinct, right: Distinct, measured: Sequence[DistanceTerm]) -> RowNumbers:
    """Return the row on the right assigned to each record on the left, one to one."""
    from scipy.optimize import linear_sum_assignment

    n_left, n_right = len(left.class_of), len(right.class_of)
    if n_left * n_right > ASSIGNABLE:
        raise DataError(
            f"{n_left} by {n_right} records are too many to assign one to one (at most {ASSIGNABLE} pairs)",
            "link a sample of the records, or omit one_to_one",
        )
    cost = np.zeros((len(left.codes), len(right.codes)))
    for part in measured:
        cost += part.between(left.codes[:, part.column][:, None], right.codes[:, part.column])
    rows, places = linear_sum_assignment(cost[left.class_of][:, right.class_of])
    assigned = np.full(n_left, -1, np.int64)
    assigned[rows] = places
    return assigned


def _credit(assigned: RowNumbers, owners: RowNumbers, right: Distinct) -> float:
    """Return the probability of the right record: 1/t if one of t equal records is assigned."""
    is_assigned = assigned >= 0
    mine, theirs = right.class_of[assigned[is_assigned]], right.class_of[owners[is_assigned]]
    return float(((mine == theirs) / right.counts[theirs]).sum())
