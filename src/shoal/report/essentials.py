"""The three answers at the top of a report: re-identification, remaining data, and inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.attacks.risk import WITH_INSIGHT, Attacks, Risk
from shoal.judge.figures import figures
from shoal.policy import Policy
from shoal.recoding import Recoding
from shoal.report.fates import Fate, as_it_was, columns_with_fate
from shoal.report.wording import counted_unit
from shoal.text.figures import format_count, format_list, format_number, format_share

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
    """Answer the three questions from a release, the fate of its columns, and attacks if they were run.

    ``labels``: coarsened columns have a released label beside them, where many share one.
    """
    policy = release.policy
    found = found_in(release.measured, policy, release.verdicts.records, counted_unit(policy))
    return Essentials(found, _left(release, columns, labels), _inferred(release, attacks))


def found_before(release: Release) -> str:
    """Risk of re-identification in the original, counted as the release is: people, and what the policy calls missing.

    Where values were too many to be counted as they are, more people may be unique than can be told.
    """
    policy, counted_table = release.policy, release.counted
    table, seen = as_it_was(counted_table.table, policy)
    told = found_in(figures(table, seen=seen), policy, table.n_records, counted_unit(policy))
    if not counted_table.raised:
        return told
    coarser = format_list(sorted(counted_table.raised), MOST_NAMES)
    return f"{told} This is the least that can be said: {coarser} had too many values and was counted coarser."


def found_in(measured: Mapping[str, float], policy: Policy, records: int, one: str) -> str:
    """Risk of re-identification in a table with these figures, which count people or records."""
    k = int(measured["k"])
    known = f"Someone who knows {format_list(policy.quasi, MOST_NAMES)}"
    if not records:
        return "Nobody can be re-identified: no record is left."
    if k <= 1:
        alone = format_share(measured["sample_uniqueness"], 1)
        who = "belong to people who are" if one == "person" else "are"
        return f"{known} can identify some people with certainty: {alone} of the records {who} unique in these columns."
    untold = "" if one == counted_unit(policy) else " How many people these records belong to cannot be determined."
    return (
        f"{known} finds at least {format_count(k, one)} that match: the probability of picking the right one is "
        "at most "
        f"1 in {format_number(k)}, on average 1 in {_one_in(measured['risk_mean'])}.{untold}{_households(measured)}"
    )


def _households(measured: Mapping[str, float]) -> str:
    """Describe household risk if a column names households: one identified member identifies the others."""
    if "household_risk_max" not in measured:
        return ""
    most, mean = (format_share(measured[f"household_risk_{which}"], 1) for which in ("max", "mean"))
    return f" The probability that some member of a household is identified is at most {most}, on average {mean}."


def _one_in(chance: float) -> str:
    """Format a probability as 1 in n, rounded down so that the risk is never understated."""
    return format_number(int(1 / chance + 1e-9)) if chance else "∞"


def _left(release: Release, columns: Sequence[Fate], labels: bool) -> str:
    """List columns by what happened to them, and the suppressed records."""
    policy = release.policy
    example = {c.name: f"{c.name} ({c.became})" for c in columns if c.became is not None} if labels else {}
    parts = {
        "Kept": [*columns_with_fate(columns, "kept"), *policy.sensitive, *policy.having("plain")],
        "Generalized": [example.get(name, name) for name in columns_with_fate(columns, "coarsened")],
        "Suppressed": columns_with_fate(columns, "hidden"),
        "Removed": list(policy.identifiers),
    }
    told = [f"{what}: {format_list(names, MOST_NAMES)}." for what, names in parts.items() if names]
    return " ".join([*told, gone(release)])


def gone(release: Release) -> str:
    """Describe the suppressed records."""
    n, of = release.suppressed, release.counted.n_records
    if not n:
        return "No record was suppressed."
    fate = "suppressed" if release.policy.release.suppressed == "drop" else "reduced to *"
    return (
        f"{format_number(n)} of {format_count(of, 'record')} ({format_share(n, of)}) {'was' if n == 1 else 'were'} "
        f"{fate}."
    )


def proof(recoding: Recoding) -> str:
    """Describe what is known about the optimality of a solution, never more than was proved for its kind."""
    if recoding.bound is not None and not recoding.proved:
        if recoding.kind == "full domain":
            return f"the best found in the time available; lower bound {format_number(recoding.bound)}"
        if recoding.bound > 0:  # no loss is below 0 anyway
            return f"the best found; lower bound {format_number(recoding.bound)}"
    if not recoding.proved:
        return "not proved optimal"
    return f"the smallest {_NARROWER.get(recoding.algorithm, _AMONG[recoding.kind])}, proved"


def worth(entry: Entry, objective: str) -> str:
    """Describe the proof of an algorithm in a comparison; one that only suppresses proves nothing about others."""
    if not entry.proved or entry.algorithm in _NARROWER:
        return ""
    return f"smallest {objective} {_AMONG[entry.kind]}, proved"


_AMONG = {"full domain": "with one level per column", "cuts": "with one cut per column", "cells": "of all recodings"}
# Searches that look only at answers of a narrower kind.
_NARROWER = {
    "suppress_records": "if only whole records are suppressed",
    "suppress_columns": "if only whole columns are suppressed",
    "suppress_cells": "if only cells are suppressed",
}


def _inferred(release: Release, attacks: Attacks | None) -> str:
    """Describe what the most revealing class discloses, and how much better attacks guess with the release."""
    columns = {name: figures for name, figures in release.measured.columns.items() if figures}
    if not columns:
        return "The policy declares no sensitive column, so inference was not assessed."
    worst = max(columns, key=lambda name: columns[name]["alpha"])
    alpha = columns[worst]["alpha"]
    told = f"In the most revealing class, {format_share(alpha, 1)} of the records have the same {worst}"
    told += ": finding the class discloses it." if alpha == 1 else "."
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
        f"The best attack guessed {risk.column} correctly for {format_share(risk.share, 1)} of the records it "
        f"tried, and for {format_share(control, 1)} without the release."
    )
