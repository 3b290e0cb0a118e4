"""The three answers at the top of a report: re-identification, remaining data, and inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.attacks.risk import WITH_INSIGHT, Attacks, Risk
from shoal.judge.figures import figures
from shoal.policy import Policy
from shoal.recoding import Recoding
from shoal.report.fates import Fate, columns_with_fate, original_tables
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

    identification: str
    remaining: str
    inference: str


def essentials(
    release: Release, columns: Sequence[Fate], attacks: Attacks | None, *, labels: bool = False
) -> Essentials:
    """Answer the three questions from a release, the fate of its columns, and attacks if they were run.

    ``labels``: coarsened columns have a released label beside them, where many share one.
    """
    policy = release.policy
    identification = found_in(release.measured, policy, release.verdicts.records, counted_unit(policy))
    return Essentials(identification, _remaining(release, columns, labels), _inference(release, attacks))


def found_before(release: Release) -> str:
    """Risk of re-identification in the original, counted as the release is: people, and what the policy calls missing.

    Where values were too many to be counted as they are, more people may be unique than can be told.
    """
    policy, counted_table = release.policy, release.counted
    table, judged_classes = original_tables(counted_table.table, policy)
    sentence = found_in(figures(table, attacker_view=judged_classes), policy, table.n_records, counted_unit(policy))
    if not counted_table.raised:
        return sentence
    coarser = format_list(sorted(counted_table.raised), MOST_NAMES)
    return f"{sentence} This is the least that can be said: {coarser} had too many values and was counted coarser."


def found_in(measured: Mapping[str, float], policy: Policy, records: int, unit: str) -> str:
    """Risk of re-identification in a table with these figures, which count people or records."""
    k = int(measured["k"])
    knowledge = f"Someone who knows {format_list(policy.quasi, MOST_NAMES)}"
    if not records:
        return "Nobody can be re-identified: no record is left."
    if k <= 1:
        alone = format_share(measured["sample_uniqueness"], 1)
        subject = "belong to people who are" if unit == "person" else "are"
        unique = f"{alone} of the records {subject} unique in these columns"
        return f"{knowledge} can identify some people with certainty: {unique}."
    untold = "" if unit == counted_unit(policy) else " How many people these records belong to cannot be determined."
    return (
        f"{knowledge} finds at least {format_count(k, unit)} that match: the probability of picking the right one is "
        "at most "
        f"1 in {format_number(k)}, on average 1 in {_one_in(measured['risk_mean'])}.{untold}{_households(measured)}"
    )


def _households(measured: Mapping[str, float]) -> str:
    """Describe household risk if a column names households: one identified member identifies the others."""
    if "household_risk_max" not in measured:
        return ""
    max_risk, mean = (format_share(measured[f"household_risk_{statistic}"], 1) for statistic in ("max", "mean"))
    return f" The probability that some member of a household is identified is at most {max_risk}, on average {mean}."


def _one_in(chance: float) -> str:
    """Format a probability as 1 in n, rounded down so that the risk is never understated."""
    return format_number(int(1 / chance + 1e-9)) if chance else "∞"


def _remaining(release: Release, columns: Sequence[Fate], labels: bool) -> str:
    """List columns by what happened to them, and the suppressed records."""
    policy = release.policy
    example = (
        {c.name: f"{c.name} ({c.released_label})" for c in columns if c.released_label is not None} if labels else {}
    )
    parts = {
        "Kept": [*columns_with_fate(columns, "kept"), *policy.sensitive, *policy.having("plain")],
        "Generalized": [example.get(name, name) for name in columns_with_fate(columns, "coarsened")],
        "Suppressed": columns_with_fate(columns, "hidden"),
        "Removed": list(policy.identifiers),
    }
    sentences = [f"{fate}: {format_list(names, MOST_NAMES)}." for fate, names in parts.items() if names]
    return " ".join([*sentences, suppression_sentence(release)])


def suppression_sentence(release: Release) -> str:
    """Describe the suppressed records."""
    n, total = release.suppressed, release.counted.n_records
    if not n:
        return "No record was suppressed."
    fate = "suppressed" if release.policy.release.suppressed == "drop" else "reduced to *"
    return (
        f"{format_number(n)} of {format_count(total, 'record')} ({format_share(n, total)}) "
        f"{'was' if n == 1 else 'were'} {fate}."
    )


def loss_sentence(release: Release) -> str:
    """Describe the loss that was minimized and what is known of its optimality."""
    objective = release.policy.release.objective
    scale = " (0: every value kept, 1: all suppressed)" if objective in SHARES else ""
    loss = f"{objective[:1].upper()}{objective[1:]} {format_number(release.loss[objective])}{scale}"
    return f"{loss}: {proof(release.recoding)}."


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


def _inference(release: Release, attacks: Attacks | None) -> str:
    """Describe what the most revealing class discloses, and how much better attacks guess with the release."""
    columns = {name: figures for name, figures in release.measured.columns.items() if figures}
    if not columns:
        return "The policy declares no sensitive column, so inference was not assessed."
    worst = max(columns, key=lambda name: columns[name]["alpha"])
    alpha = columns[worst]["alpha"]
    sentence = f"In the most revealing class, {format_share(alpha, 1)} of the records have the same {worst}"
    sentence += ": finding the class discloses it." if alpha == 1 else "."
    risk = None if attacks is None else _most_inferred(attacks)
    return sentence if risk is None else f"{sentence} {_guessed(risk)}"


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
