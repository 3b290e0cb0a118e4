"""The three answers at the top of a report: re-identification, remaining data, and inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.alternatives.compare import KINDS
from shoal.attacks.risk import WITH_INSIGHT, Attacks, Risk
from shoal.policy import Policy
from shoal.recoding import Recoding
from shoal.report.fates import Fate, named
from shoal.report.wording import unit
from shoal.text.figures import counted, listed, number, share

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
    found = found_in(release.measured, policy, release.verdicts.records, unit(policy))
    return Essentials(found, _left(release, columns, labels), _inferred(release, attacks))


def found_in(measured: Mapping[str, float], policy: Policy, records: int, one: str) -> str:
    """Risk of re-identification in a table with these figures, which count people or records."""
    k = int(measured["k"])
    known = f"Someone who knows {listed(policy.quasi, MOST_NAMES)}"
    if not records:
        return "Nobody can be re-identified: no record is left."
    if k <= 1:
        alone = share(measured["sample_uniqueness"], 1)
        who = "belong to people who are" if one == "person" else "are"
        return f"{known} can identify some people with certainty: {alone} of the records {who} unique in these columns."
    untold = "" if one == unit(policy) else " How many people these records belong to cannot be determined."
    return (
        f"{known} finds at least {counted(k, one)} that match: the probability of picking the right one is at most "
        f"1 in {number(k)}, on average 1 in {_one_in(measured['risk_mean'])}.{untold}{_households(measured)}"
    )


def _households(measured: Mapping[str, float]) -> str:
    """Describe household risk if a column names households: one identified member identifies the others."""
    if "household_risk_max" not in measured:
        return ""
    most, mean = (share(measured[f"household_risk_{which}"], 1) for which in ("max", "mean"))
    return f" The probability that some member of a household is identified is at most {most}, on average {mean}."


def _one_in(chance: float) -> str:
    """Format a probability as 1 in n, rounded down so that the risk is never understated."""
    return number(int(1 / chance + 1e-9)) if chance else "∞"


def _left(release: Release, columns: Sequence[Fate], labels: bool) -> str:
    """List columns by what happened to them, and the suppressed records."""
    policy = release.policy
    example = {c.name: f"{c.name} ({c.became})" for c in columns if c.became is not None} if labels else {}
    parts = {
        "Kept": [*named(columns, "kept"), *policy.sensitive, *policy.having("plain")],
        "Generalized": [example.get(name, name) for name in named(columns, "coarsened")],
        "Suppressed": named(columns, "hidden"),
        "Removed": list(policy.identifiers),
    }
    told = [f"{what}: {listed(names, MOST_NAMES)}." for what, names in parts.items() if names]
    return " ".join([*told, gone(release)])


def gone(release: Release) -> str:
    """Describe the suppressed records."""
    n, of = release.suppressed, release.counted.n_records
    if not n:
        return "No record was suppressed."
    fate = "suppressed" if release.policy.release.suppressed == "drop" else "reduced to *"
    return f"{number(n)} of {counted(of, 'record')} ({share(n, of)}) {'was' if n == 1 else 'were'} {fate}."


def proof(recoding: Recoding) -> str:
    """Describe what is known about the optimality of a solution, never more than was proved for its kind."""
    if recoding.bound is not None and not recoding.proved:
        ended = "found in the time available" if KINDS[type(recoding)] == "full domain" else "found"
        return f"the best {ended}; lower bound {number(recoding.bound)}"
    if not recoding.proved:
        return "not proved optimal"
    return f"the smallest {_NARROWER.get(recoding.algorithm, _AMONG[KINDS[type(recoding)]])}, proved"


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
    told = f"In the most revealing class, {share(alpha, 1)} of the records have the same {worst}"
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
        f"The best attack guessed {risk.column} correctly for {share(risk.share, 1)} of the records it tried, and for "
        f"{share(control, 1)} without the release."
    )
