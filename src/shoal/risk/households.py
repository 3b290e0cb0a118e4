"""Household risk: identifying one member identifies the others.

A. Hundepool and others, "Statistical Disclosure Control", Wiley, 2012, on the risk of households: one is found if any
of its members is, 1 − Π (1 − r) over them, where r is the risk of a member. Here r is one in the respondents of the
member's class; of a person with several records it is that of the smallest class.
Needs  the rows beside the column of households, which the release no longer has.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from shoal.engines.base import Engine, Query, Rows
from shoal.errors import VerificationError
from shoal.judge import as_attackers_see
from shoal.notation import codec
from shoal.policy import Policy
from shoal.risk.individual import household_risk
from shoal.tables.frequency import ClassOf, Counts, Floats, FrequencyTable, packed


def household_figures(engine: Engine, rows: Rows | Query, released: FrequencyTable, policy: Policy) -> dict[str, float]:
    """Return the largest household risk and its mean over the released records; empty without households."""
    name = policy.release.household
    if name is None or not released.n_classes:
        return {}
    if isinstance(rows, Rows):
        if rows.sources is None:
            raise TypeError("the rows do not say which records they were made from")
        home = engine.tally([name]).coded(name).codes[rows.sources]
        table, person, n = rows.table, rows.persons, np.ones(len(home), np.int64)
    else:
        groups = rows.households
        if groups is None:
            raise TypeError("households were not counted")
        table, entity = groups.table, policy.release.entity
        home = codec.encode_texts(name, table[name]).codes
        person = None if entity is None else codec.encode_texts(entity, table[entity]).codes
        n = np.asarray(table[groups.weight]).astype(np.int64)
    risks = 1 / as_attackers_see(released, policy).persons[_class_of(table, released)]
    return figures_of_households(
        np.asarray(risks), home.astype(np.int64), None if person is None else person.astype(np.int64), n
    )


def figures_of_households(risks: Floats, home: ClassOf, person: ClassOf | None, n: Counts) -> dict[str, float]:
    """Compute them from the risk, household (-1: none) and person of rows that represent ``n`` records each."""
    household = home.copy()
    alone = home < 0  # a person without a household is a household of one
    household[alone] = home.max(initial=0) + 1 + np.arange(int(alone.sum()))
    if person is None:
        # Every record is a member: those of a row have the same risk, and each of a null's is a household of its own.
        times = np.where(alone, 1, n)
        risks_of_rows = household_risk(np.repeat(risks, times), np.repeat(household, times))[np.cumsum(times) - 1]
    else:
        members, member_of = np.unique(
            np.column_stack([np.where(alone, -1, household), person]), axis=0, return_inverse=True
        )
        worst = np.zeros(len(members))
        np.maximum.at(worst, member_of.ravel(), risks)
        homes = members[:, 0].copy()
        homes[homes < 0] = homes.max(initial=0) + 1 + np.arange(int((homes < 0).sum()))
        risks_of_rows = household_risk(worst, homes)[member_of.ravel()]
    return {
        "household_risk_max": float(risks_of_rows.max()),
        "household_risk_mean": float((risks_of_rows * n).sum() / n.sum()),
    }


def _class_of(table: pa.Table, released: FrequencyTable) -> ClassOf:
    """Return the class of each row: classes are sorted by their codes, as packed codes are."""
    columns = []
    for name in released.columns:
        coded = codec.encode_texts(name, table[name])
        columns.append(np.where(coded.codes < 0, len(coded.texts), coded.codes))
    _, class_of = np.unique(packed(np.column_stack(columns).astype(np.int32)), return_inverse=True)
    if int(class_of.max()) + 1 != released.n_classes:
        raise VerificationError("the rows whose households were counted have different classes from the release")
    return class_of.astype(np.int64)
