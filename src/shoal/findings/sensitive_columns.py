"""Sensitive columns that no requirement protects, or that a requirement protects less than it seems."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from shoal.attacks.risk import NORMAL_95, excess_over_control, percent_words
from shoal.attacks.tolerances import required_size, tolerances
from shoal.findings.attack_results import attack_findings
from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding
from shoal.findings.singled_out import SLIGHT
from shoal.models import SensitiveModel
from shoal.models.base import Passing
from shoal.models.closeness import TCloseness
from shoal.models.diversity import distinct, most_frequent, shares
from shoal.models.finding import Finding
from shoal.models.measured import InferenceRisk
from shoal.models.shares import ShareBound
from shoal.models.spread import KEAnonymity
from shoal.notation.same_values import spelled_alike
from shoal.policy import Policy
from shoal.tables.frequency import Histogram
from shoal.text.figures import format_count, format_number, format_share


def unprotected_columns(policy: Policy) -> list[str]:
    """Return the sensitive columns without a requirement: k-anonymity does not hide what a whole class shares."""
    if any(isinstance(limit, InferenceRisk) for limit in policy.limits):
        return []
    protected = [model.column for model in policy.models if isinstance(model, SensitiveModel)]
    return [name for name in policy.sensitive if None not in protected and name not in protected]


def unprotected(evidence: Evidence) -> Iterator[Finding]:
    """Find sensitive columns without a requirement, and say how much a class gives away."""
    unbounded = unprotected_columns(evidence.policy)
    for name, histogram in evidence.as_attackers_see.sensitive.items():
        if name not in unbounded:
            continue
        alike = distinct(histogram) == 1
        n_alike = int(evidence.table.counts[alike].sum())
        if n_alike:
            size = f"{format_count(int(alike.sum()), 'class')} with {format_count(n_alike, 'record')}"
            share = f"In {size}, all records have the same value: finding the class discloses it"
        else:
            share = (
                f"In one class, {format_share(float(most_frequent(histogram).max()), 1)} of the records share a value"
            )
        yield finding(
            "unprotected",
            f"No requirement protects {name!r}. {share}",
            "Require distinct-l-diversity or t-closeness",
            [name],
            int(evidence.table.persons[alike].sum()) if n_alike else None,
            "stop" if n_alike > SLIGHT * evidence.table.n_records else "decide",
        )


MIN_CLASSES = 20  # below which a success rate is too uncertain


def guessed_values(evidence: Evidence) -> Iterator[Finding]:
    """Find protected sensitive columns whose values can be guessed from the class better than is tolerated.

    The guess is the attack by skewness, counted by class: the value that is most over-represented there. Where an
    attack that was run succeeds on the column, that is the finding instead.
    """
    from_attacks = () if evidence.attacks is None else attack_findings(evidence.attacks, evidence.policy)
    attacked = {column for finding in from_attacks for column in finding.columns}
    unbounded = unprotected_columns(evidence.policy)
    # Each person is one of k in their own class, so that such a gain is chance; attacks have a control against it.
    tolerance = max(tolerances(evidence.policy)["inference"], 1 / required_size(evidence.policy))
    for name, histogram in evidence.as_attackers_see.sensitive.items():
        if name in attacked or name in unbounded or histogram.n_classes < MIN_CLASSES:
            continue
        success, control, spread = _skewness(histogram, _harmless_values(histogram, evidence.policy, name))
        above = excess_over_control(success, control)
        if above - spread > tolerance:
            yield finding(
                "guessed-values",
                f"An intruder who knows the class of a person and guesses {name!r} by what is over-represented there "
                f"is right in {percent_words(_two_digits(success))} of all cases instead of "
                f"{percent_words(_two_digits(control))}: {percent_words(_two_digits(above))} above the control, where "
                f"{percent_words(tolerance)} is tolerated",
                "Require a smaller gain (limited-gain) or a larger k, or release coarser values of the column",
                [name],
            )


def _skewness(histogram: Histogram, harmless: Passing) -> tuple[float, float, float]:
    """Return the success of guesses of the most over-represented value, the control, and the uncertainty of both."""
    n = int(histogram.counts.sum())
    class_of = histogram.class_of_entry
    whole = np.bincount(histogram.values, histogram.counts, minlength=histogram.n_values) / n
    gain = shares(histogram) - whole[histogram.values]
    gain[harmless[histogram.values]] = -1.0  # nobody minds such a guess
    # The entry of each class with the largest gain: the last one after sorting by class and gain.
    order = np.lexsort((gain, class_of))
    best = order[histogram.starts[1:] - 1]
    guessed = gain[best] > 0
    is_guess = np.zeros(len(gain), np.bool_)
    is_guess[best[guessed]] = True
    blind_of_class = np.where(guessed, whole[histogram.values[best]], 0.0)
    credits, blind = is_guess.astype(np.float64), blind_of_class[class_of]
    success, control = float(credits @ histogram.counts) / n, float(blind @ histogram.counts) / n
    # The people of a class succeed or fail together: its sum deviates from what is expected of it.
    beyond, fails = (credits - blind) * histogram.counts, (1 - blind) * histogram.counts
    above = excess_over_control(success, control)
    deviation = np.bincount(class_of, beyond - above * fails, histogram.n_classes)
    m = histogram.n_classes
    error = math.sqrt(m / (m - 1) * float(deviation @ deviation)) / max(float(fails.sum()), 1.0)
    return success, control, NORMAL_95 * error


def _harmless_values(histogram: Histogram, policy: Policy, name: str) -> Passing:
    """Return which values of a column a requirement exempts because nobody minds them."""
    exempt = np.zeros(histogram.n_values, np.bool_)
    for model in policy.models:
        if isinstance(model, ShareBound) and model.column in (None, name) and histogram.domain is not None:
            exempt |= model.model_copy(update={"common": None}).exempted(histogram.domain)
    return exempt


def _two_digits(share: float) -> float:
    """Return a share with two digits: more would tell about people of the original."""
    return float(f"{share:.2g}")


# Three quarters: then at least half of the records have a number that no other has.
NEARLY_ALL = 0.75
_BY_DISTANCE = ("ordered", "numeric", "hierarchical")


def near_numbers(evidence: Evidence) -> Iterator[Finding]:
    """Find sensitive numbers that are almost all different: every class is diverse, but may hold similar numbers."""
    table, policy = evidence.table, evidence.policy
    models: list[SensitiveModel] = [model for model in policy.models if isinstance(model, KEAnonymity)]
    models += [model for model in policy.models if isinstance(model, TCloseness) and model.distance in _BY_DISTANCE]
    for name, histogram in table.sensitive.items():
        whole = np.bincount(histogram.values, histogram.counts, minlength=histogram.n_values)
        values, n = int((whole > 0).sum()), table.n_records
        numeric = histogram.domain is not None and histogram.domain.numbers is not None
        if not numeric or values < NEARLY_ALL * n or n < 2 or any(model.column in (None, name) for model in models):
            continue
        yield finding(
            "near-numbers",
            f"The numbers in {name!r} are almost all different, with {format_count(values, 'different value')} in "
            f"{format_count(n, 'record')}: a class can be diverse and still contain only similar numbers",
            'Require t-closeness with distance = "numeric"',
            [name],
        )


def spelling(evidence: Evidence) -> Iterator[Finding]:
    """Find sensitive values with several spellings, which make a class look more diverse than it is."""
    for name, histogram in evidence.as_attackers_see.sensitive.items():
        if histogram.domain is None:
            continue
        present = np.unique(histogram.values)
        alike = np.zeros(histogram.n_values, np.int32)
        alike[present] = spelled_alike([histogram.domain.texts[i] for i in present.tolist()])
        n_values, n_alike = len(present), len(np.unique(alike[present]))
        if n_alike == n_values:
            continue
        yield finding(
            "spelling",
            f"Values of {name!r} differ only in spelling (case, spaces, Unicode form, number format, empty or null): "
            f"{format_number(n_values)} spellings of {format_count(n_alike, 'value')}, which diversity counts "
            "as one and distances between distributions as different",
            "Unify the spelling before anonymizing",
            [name],
        )
