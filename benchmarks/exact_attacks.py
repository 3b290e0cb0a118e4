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
    if found := re.fullmatch(r"(\d+)0s", text):
        return int(value) // 10 == int(found[1])
    if found := re.fullmatch(r"(\d+)(x+)", text):
        return len(value) == len(text) and value.startswith(found[1])
    if text.startswith("{"):
        return value in text.strip("{}").split(", ")
    if "*" in text:
        return re.fullmatch(re.escape(text).replace(r"\*", "."), value) is not None
    if found := re.fullmatch(r"\[(\d+), ?(\d+)(\[|\))", text):
        return int(found[1]) <= int(value) < int(found[2])
    if found := re.fullmatch(r"(\d+)-(\d+)", text):
        return int(found[1]) <= int(value) <= int(found[2])
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
            least = scores.min(axis=1, keepdims=True)
            least[np.isinf(least)] = 0
            picks = self.fits & (scores <= least + 1e-9)
            out[name] = picks, np.exp(least - scores) if name == "most likely" else picks.astype(float)
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
        return {name: max((one[name] for one in by_all), key=lambda f: (f.above, f.share)) for name in by_all[0]}

    def _figures(self, who: str) -> dict[str, Figure]:
        picks, held = self.choices[who]
        n, m = picks.shape
        values, of_record, truth, shares = self._values
        crowd = picks.sum(axis=1)
        own = (self.owner >= 0) & picks[np.arange(n), np.maximum(self.owner, 0)]
        alone = (crowd == 1) & ((who != "most likely") | (held.sum(axis=1) < 2))
        one = np.zeros((m, len(values)))
        one[np.arange(m), of_record] = 1
        shown, weighed = picks.astype(float) @ one, held @ one
        same = (shown > 0).sum(axis=1) == 1
        said = shown.argmax(axis=1)
        out = {
            "singling out": Figure(float((alone & own).mean()), float(alone.mean() / m)),
            "identity linking": Figure(float((own / np.maximum(crowd, 1)).mean()), 1 / m),
            "homogeneity": Figure(float((same & (said == truth)).mean()), float((same * shares[said]).mean())),
        }
        out |= self._with_insight(shown, truth)
        if self.nearest:
            return out
        there = crowd > 0
        gain = np.where(weighed > 0, weighed / np.maximum(weighed.sum(axis=1, keepdims=True), 1e-300) - shares, -9.0)
        bet = gain.round(12).argmax(axis=1)
        out["skewness"] = Figure(float((there & (bet == truth)).mean()), float((there * shares[bet]).mean()))
        guess = self._predicted(weighed)
        out["inference"] = Figure(float((guess == truth).mean()), float((truth == shares.argmax()).mean()))
        if all(value.isdigit() for value in values):
            numbers = np.array([int(value) for value in values])
            low = np.where(shown > 0, numbers, numbers.max() + 1).min(axis=1)
            high = np.where(shown > 0, numbers, numbers.min() - 1).max(axis=1)
            near = there & (high - low <= self.within * (numbers.max() - numbers.min()) + 1e-9)
            own_number = np.where(truth >= 0, numbers[truth], -1)
            right = near & (low <= own_number) & (own_number <= high)
            inside = ((numbers >= low[:, None]) & (numbers <= high[:, None])) @ shares
            out["similarity"] = Figure(float(right.mean()), float((near * inside).mean()))
        return out

    def _with_insight(self, shown: Matrix, truth: NDArray[np.int64]) -> dict[str, Figure]:
        """Who can rule a value out, knows a relative's, or takes the own record away (from all that fit)."""
        known, place = truth >= 0, np.maximum(truth, 0)
        rows = np.arange(len(shown))

        def alone(table: Matrix) -> NDArray[np.bool_]:
            """Whether nothing but the person's own value is left."""
            return known & (table[rows, place] > 0) & ((table > 0).sum(axis=1) == 1)

        given = alone(shown)
        excluded = known & (shown[rows, place] > 0) & ((shown > 0).sum(axis=1) <= 2)
        one_of_theirs = np.zeros(len(shown))
        others = shown.copy()
        others[rows, place] -= known & (shown[rows, place] > 0)
        for value in range(shown.shape[1]):
            left = shown.copy()
            left[:, value] -= others[:, value] > 0
            one_of_theirs += others[:, value] * alone(left)
        n_others = others.sum(axis=1)
        relative = np.where(n_others > 0, one_of_theirs / np.maximum(n_others, 1), given)
        every = self.fits.astype(float) @ np.eye(shown.shape[1])[self._values[1]]
        member = known & (every[rows, place] > 0)
        alike = member & ((every > 0).sum(axis=1) == 1) & (every.sum(axis=1) > 1)
        without = every.copy()
        without[rows, place] -= member
        learned = member & ((without > 0).sum(axis=1) == 1)
        return {
            "exclusion": Figure(float(excluded.mean()), float(given.mean())),
            "relative": Figure(float(relative.mean()), float(given.mean())),
            "external knowledge": Figure(float(learned.mean()), float(alike.mean())),
        }

    def beside(self, other: Exact) -> Figure:
        """Both releases: the values that the records that fit have in common."""
        shown, theirs = (
            {v: one.fits @ (np.array(one.records[self.sensitive]) == v) for v in self.people_values}
            for one in (self, other)
        )
        n = len(self.owner)
        certain, by_one = np.zeros(n, bool), np.zeros(n, bool)
        for i, own in enumerate(self.people[self.sensitive]):
            sets = [{v for v, count in table.items() if count[i]} for table in (shown, theirs)]
            certain[i] = sets[0] & sets[1] == {own}
            by_one[i] = certain[i] and {own} in sets
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
            given = (count + 1) / (np.bincount(of_record) + len(cover) + 1)
            with np.errstate(divide="ignore"):
                logs += np.log(cover.T.astype(float) @ given)[mine]
        logs = np.where(np.isneginf(logs.max(axis=1, keepdims=True)), np.log(shares), logs)
        belief = np.exp(logs - logs.max(axis=1, keepdims=True))
        belief /= belief.sum(axis=1, keepdims=True)
        there = weighed.sum(axis=1) > 0
        score = np.where(weighed > 0, weighed + belief, -1.0)
        return np.where(there, score.argmax(axis=1), belief.argmax(axis=1))
