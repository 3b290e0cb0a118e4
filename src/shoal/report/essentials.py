"""What a reader wants to know first, in three answers: who can be found, what is left, what can still be inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.alternatives.compare import KINDS
from shoal.attacks.risk import WITH_INSIGHT, Attacks, Risk
from shoal.policy import Policy
from shoal.recoding import Recoding
from shoal.report.fates import Fate, named
from shoal.report.wording import listed, unit
from shoal.text.figures import counted, number, share

if TYPE_CHECKING:
    from shoal.alternatives.compare import Entry
    from shoal.release import Release

SHARES = ("loss", "arx-loss")  # objectives from 0 to 1
MOST_NAMES = 8  # of columns in one sentence


@dataclass(frozen=True)
class Essentials:
    """The three answers, each a sentence or two."""

    found: str
    left: str
    inferred: str


def essentials(
    release: Release, columns: Sequence[Fate], attacks: Attacks | None, *, labels: bool = False
) -> Essentials:
    """Of a release, what became of its columns, and what attacks found, where they were run.

    ``labels``: coarsened columns have a released label beside them, where many share one.
    """
    policy = release.policy
    found = found_in(release.measured, policy, release.verdicts.records, unit(policy))
    return Essentials(found, _left(release, columns, labels), _inferred(release, attacks))


def found_in(measured: Mapping[str, float], policy: Policy, records: int, one: str) -> str:
    """How likely it is that somebody is found in a table with these figures, which count persons or records."""
    k = int(measured["k"])
    known = f"Whoever knows {listed(policy.quasi, MOST_NAMES)}"
    if not records:
        return "Nobody can be found: no record is left."
    if k <= 1:
        alone = share(measured["sample_uniqueness"], 1)
        who = "belong to persons who are" if one == "person" else "are"
        return f"{known} can find somebody for certain: {alone} of the records {who} unique in these columns."
    untold = "" if one == unit(policy) else " How many persons these records are of cannot be told."
    return (
        f"{known} finds at least {counted(k, one)} that fit: the right one is picked with a chance of at most 1 in "
        f"{number(k)}, on average 1 in {_one_in(measured['risk_mean'])}.{untold}{_households(measured)}"
    )


def _households(measured: Mapping[str, float]) -> str:
    """Of households, where a column names them: one member who is found gives the others away."""
    if "household_risk_max" not in measured:
        return ""
    most, mean = (share(measured[f"household_risk_{which}"], 1) for which in ("max", "mean"))
    return f" That some member of a household is found has a chance of at most {most}, on average {mean}."


def _one_in(chance: float) -> str:
    """Rounded down, so that the chance is never told as smaller than it is."""
    return number(int(1 / chance + 1e-9)) if chance else "∞"


def _left(release: Release, columns: Sequence[Fate], labels: bool) -> str:
    """Columns by name, and the records that are gone."""
    policy = release.policy
    example = {c.name: f"{c.name} ({c.became})" for c in columns if c.became is not None} if labels else {}
    parts = {
        "Kept": [*named(columns, "kept"), *policy.sensitive, *policy.having("plain")],
        "Coarsened": [example.get(name, name) for name in named(columns, "coarsened")],
        "Hidden": named(columns, "hidden"),
        "Removed": list(policy.identifiers),
    }
    told = [f"{what}: {listed(names, MOST_NAMES)}." for what, names in parts.items() if names]
    return " ".join([*told, gone(release)])


def gone(release: Release) -> str:
    """The records that are suppressed."""
    n, of = release.suppressed, release.engine.n_records
    if not n:
        return "No record was left out."
    fate = "left out" if release.policy.release.suppressed == "drop" else "reduced to *"
    return f"{number(n)} of {counted(of, 'record')} ({share(n, of)}) {'was' if n == 1 else 'were'} {fate}."


def proof(recoding: Recoding) -> str:
    """What is known of the loss of an answer: never more than was proved of answers of its kind."""
    if recoding.bound is not None and not recoding.proved:
        ended = "in the time given" if KINDS[type(recoding)] == "full domain" else "that was found"
        return f"the best {ended}, none is below {number(recoding.bound)}"
    if not recoding.proved:
        return "not proved to be the smallest"
    return f"the smallest {_NARROWER.get(recoding.algorithm, _AMONG[KINDS[type(recoding)]])}, proved"


def worth(entry: Entry, objective: str) -> str:
    """The same of an algorithm beside others: one that only hides proves nothing about those that generalize."""
    if not entry.proved or entry.algorithm in _NARROWER:
        return ""
    return f"smallest {objective} {_AMONG[entry.kind]}, proved"


_AMONG = {"full domain": "with one level per column", "cuts": "with one cut per column", "cells": "of all"}
# Searches that look only at answers of a narrower kind.
_NARROWER = {
    "suppress_records": "where only whole records are hidden",
    "suppress_columns": "where only whole columns are hidden",
    "suppress_cells": "where only cells are hidden",
}


def _inferred(release: Release, attacks: Attacks | None) -> str:
    """What a class tells at the worst, and how much better than without the release attacks guess."""
    columns = {name: figures for name, figures in release.measured.columns.items() if figures}
    if not columns:
        return "The policy names no sensitive column, so nothing is said about what could be inferred."
    worst = max(columns, key=lambda name: columns[name]["alpha"])
    alpha = columns[worst]["alpha"]
    told = f"In the class that tells most, {share(alpha, 1)} of the records have the same {worst}"
    told += ": finding the class tells it." if alpha == 1 else "."
    risk = None if attacks is None else _most_inferred(attacks)
    return told if risk is None else f"{told} {_guessed(risk)}"


def _most_inferred(attacks: Attacks) -> Risk | None:
    able = [r for r in attacks if r.question == "inference" and r.name not in WITH_INSIGHT and r.control is not None]
    return max(able, key=lambda risk: (risk.above, risk.share), default=None)


def _guessed(risk: Risk) -> str:
    control = 0.0 if risk.control is None else risk.control.share
    if risk.above <= 0:
        return "Attacks guessed sensitive values no better with the release than without it."
    return (
        f"The best attack guessed {risk.column} right for {share(risk.share, 1)} of the records that it tried, for "
        f"{share(control, 1)} without the release."
    )
