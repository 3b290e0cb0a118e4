"""Several releases of the same people: the policy must hold even for someone who has all of them.

L. Sweeney, "k-anonymity: a model for protecting privacy", IJUFKS 10(5), 2002, calls it the complementary release
attack: two releases of the same people, each safe alone, may single out a person together.
Needs  the original: it shows which people a released tuple can cover.
Finds  classes of people whom no release tells apart, and judges these. People are told apart as soon as one release has
       a tuple that covers one of them and not the other, so the classes are never too large.
Costs  what ``consistency`` costs, once per release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group
from shoal.engines.base import Engine
from shoal.engines.data import Data
from shoal.engines.opening import engine_of, original_of
from shoal.errors import PolicyError
from shoal.forbidden.mining import mine
from shoal.judge import judge_release, judge_results
from shoal.models.verdict import Verdict, Verdicts
from shoal.original.comparison import best_matches, read_columns
from shoal.policy import Policy
from shoal.tables.frequency import FrequencyTable, count_records, packed


def together(original: Data, releases: Sequence[Data], policy: Policy) -> Verdicts:
    """Judge every requirement on the classes of people that all the releases together leave indistinguishable.

    A forbidden result fails if it comes out of one of the releases. What comes out of records linked across releases
    is not mined, so otherwise it cannot be determined.
    """
    if policy.release.nulls == "wildcard":
        raise PolicyError("several releases cannot be compared with nulls = 'wildcard'", "use 'category'")
    table = original_of(original, policy).count(policy.of_all_levels()).table
    candidates = [_candidate_classes(table, engine_of(release, policy), policy) for release in releases]
    candidate_rows = np.flatnonzero(np.any([ids > 0 for ids in candidates], axis=0))
    if not len(candidate_rows):
        raise PolicyError("no record of the original is in the releases", "pass the table that they were made from")
    codes = np.column_stack(candidates)[candidate_rows].astype(np.int32)
    class_of, firsts = group(packed(codes))
    rest = table.selected(candidate_rows)
    verdicts = judge_release(rest.merged(class_of, len(firsts), rest.codes[firsts]), policy, limits=())
    results = _results(releases, policy)
    judged = (*verdicts.verdicts[: len(verdicts.verdicts) - len(results)], *results)
    return replace(
        verdicts,
        verdicts=tuple(
            replace(verdict, asked=f"{verdict.asked}, together with earlier releases") for verdict in judged
        ),
    )


def _results(releases: Sequence[Data], policy: Policy) -> list[Verdict]:
    """Judge forbidden results on each release by itself."""
    if not policy.forbid:
        return []
    names = dict.fromkeys(name for result in policy.forbid for name in result.columns)
    results = []
    for release in releases:
        engine = engine_of(release, policy)
        if absent := [name for name in names if name not in engine.columns]:
            raise PolicyError(f"a release has no column {', '.join(map(repr, absent))}, which a forbidden result names")
        results.append(judge_results(policy, mine(engine.tally(list(names)).countable(), policy)))
    linked = "records linked across releases are not mined"
    return [
        next(
            (verdict for verdict in verdicts if verdict.outcome == "fails"),
            replace(verdicts[0], outcome="unknown", missing=linked),
        )
        for verdicts in zip(*results, strict=True)
    ]


def _candidate_classes(table: FrequencyTable, engine: Engine, policy: Policy) -> NDArray[np.int64]:
    """Number the released tuples that match each row of the original; 0 if none does."""
    if absent := [name for name in policy.quasi if name not in engine.columns]:
        raise PolicyError(f"an earlier release has no column {', '.join(map(repr, absent))}")
    release = engine.tally(policy.quasi)
    columns = read_columns(table.hierarchies, [release.coded(name) for name in policy.quasi], policy)
    if unread := {column.name: column.n_unknown for column in columns if column.n_unknown}:
        name, n_cells = next(iter(unread.items()))
        raise PolicyError(
            f"column {name!r}: {n_cells} cells of a release match no value of the original, so it is unknown "
            "whom they describe",
            "pass the table that the releases were made from; releases that show means cannot be compared",
        )
    tuples, _ = count_records(policy.quasi, np.column_stack([column.texts for column in columns]), {})
    kinds = np.column_stack([column.kind_of[table.codes[:, j]] for j, column in enumerate(columns)])
    class_of, firsts = group(packed(kinds))
    matches, consistent = best_matches(kinds[firsts], tuples.codes, columns)
    numbers: dict[bytes, int] = {}
    ids = np.zeros(len(firsts), np.int64)
    for i in np.flatnonzero(consistent).tolist():
        row_bytes = matches.indices[matches.indptr[i] : matches.indptr[i + 1]].tobytes()
        ids[i] = numbers.setdefault(row_bytes, len(numbers) + 1)
    ids = ids[class_of]
    n_found = int(table.counts[ids > 0].sum())
    if n_found < release.n_records:
        raise PolicyError(
            f"a release has {release.n_records} records, but only {n_found} records of the original can match them",
            "pass the table that it was made from; a release with perturbed values cannot be compared with others",
        )
    return ids
