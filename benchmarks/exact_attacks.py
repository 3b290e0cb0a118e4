"""Attacks by brute force: a matrix of all people and all records, and nothing shared with shoal's own code.

What a released text stands for is read here by a few lines of its own; who picks what, and when a claim is right,
follows docs/attacks.md. Slow, and obvious.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
ROUNDS = 30
INTRUDERS = ("uniform", "most specific", "most likely")


def stands_for(text: str, value: str) -> bool:
    """Equal, a star, a mask, a set, a decade, a range of whole numbers or of any."""
    if text == value or text.strip("*") == "":
        return True
    if match := re.fullmatch(r"(\d+)0s", text):
        return int(value) // 10 == int(match[1])
    if match := re.fullmatch(r"(\d+)(x+)", text):
        return len(value) == len(text) and value.startswith(match[1])
    if text.startswith("{"):
        return value in text.strip("{}").split(", ")
    if "*" in text:
        return re.fullmatch(re.escape(text).replace(r"\*", "."), value) is not None
    if match := re.fullmatch(r"\[(\d+), ?(\d+)(\[|\))", text):
        return int(match[1]) <= int(value) < int(match[2])
    if match := re.fullmatch(r"(\d+)-(\d+)", text):
        return int(match[1]) <= int(value) <= int(match[2])
    return False


@dataclass(frozen=True)
class Figure:
    """What an attack reaches: successes, and those of the control, as shares of all people."""

    share: float
    control: float

    @property
    def above(self) -> float:
        """What is left beside the control."""
        return max(0.0, (self.share - self.control) / (1 - self.control)) if self.control < 1 else 0.0


@dataclass(frozen=True, eq=False)
class Exact:
    """One release beside its people; ``owner[i]`` is the record of person ``i``, -1 for none."""

    people: dict[str, list[str]]
    records: dict[str, list[str]]
    owner: NDArray[np.int64]
    quasi: tuple[str, ...]
    sensitive: str
    within: float = 0.25
    nearest: bool = False  # the one quasi column has changed numbers: the nearest ones are taken

    @cached_property
    def _columns(self) -> list[tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64], Matrix]]:
        """Per column: texts × values that stand for each other, the value of each person, the text of each record."""
        out = []
        for name in self.quasi:
            values, texts = sorted(set(self.people[name])), sorted(set(self.records[name]))
            at = {value: j for j, value in enumerate(values)}
            cover = np.zeros((len(texts), len(values)), bool)
            for i, text in enumerate(texts):
                if text in at:  # a plain value stands for itself
                    cover[i, at[text]] = True
                else:
                    cover[i] = [stands_for(text, value) for value in values]
            mine = np.array([values.index(value) for value in self.people[name]])
            theirs = np.array([texts.index(text) for text in self.records[name]])
            n_of = np.bincount(theirs, minlength=len(texts)).astype(float)
            share = np.full(len(values), 1 / len(values))
            first = share / len(theirs)
            for _ in range(ROUNDS):
                total = cover @ share
                fresh = first + share * (cover.T @ np.divide(n_of, total, out=np.zeros(len(texts)), where=total > 0))
                share = fresh / fresh.sum()
            out.append((cover, mine, theirs, np.stack([cover.sum(axis=1), cover @ share])))
        return out

    @cached_property
    def fits(self) -> NDArray[np.bool_]:
        """People × records."""
        if self.nearest:
            mine, theirs = (np.array([float(x) for x in table[self.quasi[0]]]) for table in (self.people, self.records))
            off = np.abs(mine[:, None] - theirs)
            return np.asarray(off <= off.min(axis=1, keepdims=True) + 1e-9)
        out = np.ones((len(self.owner), len(self.records[self.sensitive])), bool)
        for cover, mine, theirs, _ in self._columns:
            out &= cover.T[mine][:, theirs]
        return out

    @cached_property
    def choices(self) -> dict[str, tuple[NDArray[np.bool_], Matrix]]:
        """Per intruder the records picked, and how likely each is held to be the own one."""
        if self.nearest:
            return dict.fromkeys(INTRUDERS, (self.fits, self.fits.astype(float)))
        logs = np.zeros((2, self.fits.shape[1]))
        for _, _, theirs, extent in self._columns:
            logs += np.log(np.where(extent > 0, extent, 1.0))[:, theirs]
        out = {"uniform": (self.fits, self.fits.astype(float))}
        for name, score in zip(INTRUDERS[1:], logs, strict=True):
            scores = np.where(self.fits, score, np.inf)
            lowest = scores.min(axis=1, keepdims=True)
            lowest[np.isinf(lowest)] = 0
            picks = self.fits & (scores <= lowest + 1e-9)
            out[name] = picks, np.exp(lowest - scores) if name == "most likely" else picks.astype(float)
        return out

    @cached_property
    def _values(self) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64], Matrix]:
        values = sorted(set(self.records[self.sensitive]))
        number = {value: i for i, value in enumerate(values)}
        of_record = np.array([number[value] for value in self.records[self.sensitive]])
        truth = np.array([number.get(value, -1) for value in self.people[self.sensitive]])
        return values, of_record, truth, np.bincount(of_record) / len(of_record)

    def figures(self) -> dict[str, Figure]:
        """Every attack, by the intruder who leaves most above the control."""
        by_all = [self._figures(name) for name in INTRUDERS]
        return {
            name: max((of_intruder[name] for of_intruder in by_all), key=lambda f: (f.above, f.share))
            for name in by_all[0]
        }

    def _figures(self, intruder: str) -> dict[str, Figure]:
        picks, weights = self.choices[intruder]
        n, m = picks.shape
        values, of_record, truth, shares = self._values
        crowd = picks.sum(axis=1)
        is_owner = (self.owner >= 0) & picks[np.arange(n), np.maximum(self.owner, 0)]
        alone = (crowd == 1) & ((intruder != "most likely") | (weights.sum(axis=1) < 2))
        one_hot = np.zeros((m, len(values)))
        one_hot[np.arange(m), of_record] = 1
        value_counts, weighed = picks.astype(float) @ one_hot, weights @ one_hot
        is_single = (value_counts > 0).sum(axis=1) == 1
        likeliest = value_counts.argmax(axis=1)
        out = {
            "singling out": Figure(float((alone & is_owner).mean()), float(alone.mean() / m)),
            "identity linking": Figure(float((is_owner / np.maximum(crowd, 1)).mean()), 1 / m),
            "homogeneity": Figure(
                float((is_single & (likeliest == truth)).mean()), float((is_single * shares[likeliest]).mean())
            ),
        }
        out |= self._with_insight(value_counts, truth)
        if self.nearest:
            return out
        has_candidates = crowd > 0
        gain = np.where(weighed > 0, weighed / np.maximum(weighed.sum(axis=1, keepdims=True), 1e-300) - shares, -9.0)
        bet = gain.round(12).argmax(axis=1)
        out["skewness"] = Figure(
            float((has_candidates & (bet == truth)).mean()), float((has_candidates * shares[bet]).mean())
        )
        guess = self._predicted(weighed)
        out["inference"] = Figure(float((guess == truth).mean()), float((truth == shares.argmax()).mean()))
        if all(value.isdigit() for value in values):
            numbers = np.array([int(value) for value in values])
            low = np.where(value_counts > 0, numbers, numbers.max() + 1).min(axis=1)
            high = np.where(value_counts > 0, numbers, numbers.min() - 1).max(axis=1)
            near = has_candidates & (high - low <= self.within * (numbers.max() - numbers.min()) + 1e-9)
            own_number = np.where(truth >= 0, numbers[truth], -1)
            right = near & (low <= own_number) & (own_number <= high)
            inside = ((numbers >= low[:, None]) & (numbers <= high[:, None])) @ shares
            out["similarity"] = Figure(float(right.mean()), float((near * inside).mean()))
        return out

    def _with_insight(self, value_counts: Matrix, truth: NDArray[np.int64]) -> dict[str, Figure]:
        """Who can rule a value out, knows a relative's, or takes the own record away (from all that fit)."""
        has_truth, truth_or_zero = truth >= 0, np.maximum(truth, 0)
        rows = np.arange(len(value_counts))

        def alone(table: Matrix) -> NDArray[np.bool_]:
            """Whether nothing but the person's own value is left."""
            return has_truth & (table[rows, truth_or_zero] > 0) & ((table > 0).sum(axis=1) == 1)

        certain = alone(value_counts)
        excluded = has_truth & (value_counts[rows, truth_or_zero] > 0) & ((value_counts > 0).sum(axis=1) <= 2)
        one_of_theirs = np.zeros(len(value_counts))
        remaining = value_counts.copy()
        remaining[rows, truth_or_zero] -= has_truth & (value_counts[rows, truth_or_zero] > 0)
        for value in range(value_counts.shape[1]):
            left = value_counts.copy()
            left[:, value] -= remaining[:, value] > 0
            one_of_theirs += remaining[:, value] * alone(left)
        n_others = remaining.sum(axis=1)
        relative = np.where(n_others > 0, one_of_theirs / np.maximum(n_others, 1), certain)
        every = self.fits.astype(float) @ np.eye(value_counts.shape[1])[self._values[1]]
        member = has_truth & (every[rows, truth_or_zero] > 0)
        alike = member & ((every > 0).sum(axis=1) == 1) & (every.sum(axis=1) > 1)
        all_but_one = every.copy()
        all_but_one[rows, truth_or_zero] -= member
        learned = member & ((all_but_one > 0).sum(axis=1) == 1)
        return {
            "exclusion": Figure(float(excluded.mean()), float(certain.mean())),
            "relative": Figure(float(relative.mean()), float(certain.mean())),
            "external knowledge": Figure(float(learned.mean()), float(alike.mean())),
        }

    def complementary(self, other: Exact) -> Figure:
        """Both releases: the values that the records that fit have in common."""
        value_counts, theirs = (
            {v: release.fits @ (np.array(release.records[self.sensitive]) == v) for v in self.people_values}
            for release in (self, other)
        )
        n = len(self.owner)
        certain, by_one = np.zeros(n, bool), np.zeros(n, bool)
        for i, own_value in enumerate(self.people[self.sensitive]):
            sets = [{v for v, count in table.items() if count[i]} for table in (value_counts, theirs)]
            certain[i] = sets[0] & sets[1] == {own_value}
            by_one[i] = certain[i] and {own_value} in sets
        return Figure(float(certain.mean()), float(by_one.mean()))

    @property
    def people_values(self) -> set[str]:
        """Of the sensitive column, all that there are."""
        return {*self.people[self.sensitive], *self.records[self.sensitive]}

    def _predicted(self, weighed: Matrix) -> NDArray[np.int64]:
        """Naive Bayes over the texts that stand for what is known, as one more record among those that fit."""
        _, of_record, _, shares = self._values
        n_values = len(shares)
        logs = np.tile(np.log(shares), (len(weighed), 1))
        for cover, mine, theirs, _ in self._columns:
            count = np.zeros((len(cover), n_values))
            np.add.at(count, (theirs, of_record), 1)
            # One place more for a text that was never seen: a null.
            likelihood = (count + 1) / (np.bincount(of_record) + len(cover) + 1)
            with np.errstate(divide="ignore"):
                logs += np.log(cover.T.astype(float) @ likelihood)[mine]
        logs = np.where(np.isneginf(logs.max(axis=1, keepdims=True)), np.log(shares), logs)
        belief = np.exp(logs - logs.max(axis=1, keepdims=True))
        belief /= belief.sum(axis=1, keepdims=True)
        has_weight = weighed.sum(axis=1) > 0
        score = np.where(weighed > 0, weighed + belief, -1.0)
        return np.where(has_weight, score.argmax(axis=1), belief.argmax(axis=1))
