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
    """Equal, a star, a mask, a set, a range of whole numbers or of any."""
    if text == value or text.strip("*") == "":
        return True
    if text.startswith("{"):
        return value in text.strip("{}").split(", ")
    if "*" in text:
        return re.fullmatch(re.escape(text).replace(r"\*", "."), value) is not None
    if found := re.fullmatch(r"\[(\d+), (\d+)(\[|\))", text):
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

    @cached_property
    def _columns(self) -> list[tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64], Matrix]]:
        """Per column: texts × values that stand for each other, the value of each person, the text of each record."""
        out = []
        for name in self.quasi:
            values, texts = sorted(set(self.people[name])), sorted(set(self.records[name]))
            at = {value: j for j, value in enumerate(values)}
            cover = np.zeros((len(texts), len(values)), bool)
            for i, text in enumerate(texts):
                if not text.isalnum():
                    cover[i] = [stands_for(text, value) for value in values]
                elif text in at:  # a plain value stands for itself
                    cover[i, at[text]] = True
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
        out = np.ones((len(self.owner), len(self.records[self.sensitive])), bool)
        for cover, mine, theirs, _ in self._columns:
            out &= cover.T[mine][:, theirs]
        return out

    @cached_property
    def choices(self) -> dict[str, tuple[NDArray[np.bool_], Matrix]]:
        """Per intruder the records picked, and how likely each is held to be the own one."""
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
