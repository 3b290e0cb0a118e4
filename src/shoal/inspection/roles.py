"""Guess the role of a column from its name, the format of its values and their counts.

The question is what an outsider could know. Demographics, places, dates and visible traits are quasi-identifiers;
diagnoses, laboratory values, scores, money and survey answers are sensitive; sampling weights and technical columns are
plain. If the name says nothing, only the format of the values remains, and the guess is marked as unsure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal.hierarchies.formats import NUMBER, date_formats, sample
from shoal.inspection import vocabulary as words_of
from shoal.inspection.hierarchy_proposal import FEW, is_code, words
from shoal.inspection.recognised_values import Recognised, coordinate_pairs, recognised
from shoal.policy.column import Role

Kind = Literal["number", "date", "code", "text", "category"]
Sure = Literal["sure", "likely", "unsure"]
CountTuples = Callable[..., int]  # of the names of columns: how many different tuples of values they have

CROWD = 5  # records among which nobody stands out
ENOUGH = 20  # below so many records, unique values say nothing about a column
PERSON_KEY = "identifies people, judging by its name"
ANSWER = "opinions, scores or behaviour"  # what a name suggests
AS_TOLD = "as you specified"
NOTHING_ELSE = "no other column to link on"
YEARS = 30  # different numbers of years at school
FEW_PRIVATE = 5  # columns, all private: an outsider may still know each of them
LONG = 40  # characters on average: nobody abbreviates a category like that

SPLITTING = "published as it is, it would split the classes: to keep it unchanged, set the role to plain"

SAVED_INDEX = re.compile(r"Unnamed: [0-9]+|__index_level_[0-9]+__")  # as pandas names one
PERSON = re.compile(r"[^\W\d_]+(?:['’. ,-]+[^\W\d_]+)*\.?")
YEAR = re.compile(r"(?:19|20)\d\d")
FIGURE = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def all_numbers(texts: Sequence[str]) -> bool:
    """Return whether every text is a number."""
    return all(map(NUMBER.fullmatch, texts))


def called(name: str, vocabulary: words_of.WordList) -> bool:
    """Return whether a word of a name is in the vocabulary."""
    return any(map(vocabulary.fullmatch, words(name)))


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column as read, with what the guesses need."""

    name: str
    texts: tuple[str, ...]
    counts: NDArray[np.int64]  # records with each text
    records: int
    distinct: int
    numbers_the_rows: bool
    all_there: bool = True  # the texts: or they are too many, and some stand for all
    label: str = ""  # what a codebook says of it
    categories: Mapping[str, str] = field(default_factory=dict)  # and of its values

    @cached_property
    def filled(self) -> int:
        """The number of records with a value."""
        return int(self.counts.sum())

    @property
    def nulls(self) -> int:
        """The number of records without a value."""
        return self.records - self.filled

    @cached_property
    def some(self) -> list[str]:
        """A sample of the texts, without blank ones."""
        return [text.strip()[:200] for text in sample(self.texts) if text.strip()]

    @cached_property
    def recognised(self) -> Recognised | None:
        """The identifiers that its values are or contain."""
        return None if self.kind == "date" else recognised(self.texts)

    @cached_property
    def kind(self) -> Kind:
        """What the values seem to be."""
        sampled, distinct = self.some, self.distinct
        if not sampled or distinct <= 2:
            return "category"
        if date_formats(sampled):
            return "date"
        if distinct > FEW and is_code(self.name, sampled):
            return "code"
        if all(map(FIGURE.fullmatch, sampled)):
            return "number"
        return "category" if distinct <= FEW or 20 * distinct <= self.filled else "text"

    @property
    def few_share(self) -> bool:
        """Whether a value occurs ten times on average, or less often."""
        return 10 * self.distinct >= self.filled

    @property
    def often_alone(self) -> bool:
        """Whether half of the records with a value, or more, have a unique one."""
        return self.filled > 1 and 2 * int((self.counts == 1).sum()) >= self.filled

    @property
    def nearly_unique(self) -> bool:
        """Whether nine of ten records have a unique value."""
        return self.filled >= ENOUGH and 10 * self.distinct >= 9 * self.filled

    @property
    def counts_up(self) -> bool:
        """Whether the values are distinct whole numbers with few gaps, as if assigned consecutively."""
        if self.distinct != self.filled or not all_numbers(self.texts):
            return False
        numbers = np.array(self.texts, dtype=np.float64)
        return not self.all_there or bool((numbers == np.floor(numbers)).all() and np.ptp(numbers) < 2 * len(numbers))

    def named(self, vocabulary: words_of.WordList) -> bool:
        """Return whether a word of its name, or of its label if the name says nothing, is in the vocabulary.

        A sentence names respondents and households in passing: it speaks of their keys only with a word for a key.
        """
        if self.by_label and vocabulary in (words_of.PEOPLE, words_of.HOUSEHOLDS) and not self.named(words_of.KEYED):
            return False
        return any(map(vocabulary.fullmatch, self.said))

    @cached_property
    def by_label(self) -> bool:
        """Whether only a codebook says what the column means, because its name is like q17."""
        return bool(self.label) and not _speaks(words(self.name))

    @cached_property
    def said(self) -> frozenset[str]:
        """The words that say what the column means."""
        if not self.by_label:
            return words(self.name)
        label_words = words(self.label)
        heavy = frozenset(word for word in label_words if not words_of.IN_PASSING.fullmatch(word))
        return heavy if _speaks(heavy) else label_words

    @cached_property
    def labelled(self) -> bool:
        """Whether a codebook has a label for every value, so that the values are codes and not numbers."""
        return self.all_there and bool(self.texts) and all(text in self.categories for text in self.texts)

    @cached_property
    def private(self) -> str:
        """The private matter that the name suggests; empty if none."""
        matters = {
            "health": words_of.HEALTH,
            "money": words_of.MONEY,
            ANSWER: words_of.ANSWERS,
        }
        visible = self.named(words_of.PERSONAL) or self.named(words_of.PLACES)
        thickness = self.named(words_of.SKIN) and self.kind == "number" and self.distinct > FEW
        if thickness or (len(self.said) == 1 and self.named(words_of.ALONE)):
            return "health"
        own_words = [word for word in self.said if not (visible and words_of.WEAK.fullmatch(word))]
        return next((matter for matter, word_list in matters.items() if any(map(word_list.fullmatch, own_words))), "")

    @cached_property
    def looks_like_kilograms(self) -> bool:
        """Return whether numbers named weight are body weights and not sampling weights."""
        numbers = np.array([text for text in self.some if NUMBER.fullmatch(text)], dtype=np.float64)
        if not len(numbers):
            return False
        return bool(25 <= np.median(numbers) <= 250 and numbers.max() < 700 and numbers.min() > 1)


@dataclass(frozen=True)
class Guess:
    """The guessed role of a column, the reason, and the confidence."""

    role: Role
    reason: str
    sure: Sure


def roles_of(columns: Sequence[RawColumn], *, any_quasi: bool = False) -> list[Guess]:
    """Guess the role of each column; ``any_quasi`` says that another column is known to outsiders anyway."""
    guesses = _with_intervals(_with_points([_guess(column) for column in columns], columns), columns)
    # A release without any quasi column promises nothing: take the next best for one. Of many private columns, such as
    # the scores of tests, nothing would be left: the caller takes one.
    for spare in ("plain", "sensitive"):
        few_spare = spare == "plain" or sum(guess.role == spare for guess in guesses) <= FEW_PRIVATE
        if few_spare and not any_quasi and all(guess.role != "quasi" for guess in guesses):
            guesses = [Guess("quasi", NOTHING_ELSE, "unsure") if guess.role == spare else guess for guess in guesses]
    return guesses


def _with_points(guesses: list[Guess], columns: Sequence[RawColumn]) -> list[Guess]:
    """Return the guesses with both coordinates of a point on the map as places, however each is called."""
    numbers = {c.name: c.texts for c, guess in zip(columns, guesses, strict=True) if guess.role != "identifier"}
    partner = {name: other for a, b in coordinate_pairs(numbers) for name, other in ((a, b), (b, a))}
    return [
        Guess("quasi", f"with {partner[column.name]!r} a point on the map", "likely")
        if column.name in partner
        else guess
        for column, guess in zip(columns, guesses, strict=True)
    ]


def _with_intervals(guesses: list[Guess], columns: Sequence[RawColumn]) -> list[Guess]:
    """Return the guesses with the ends of an interval that somebody is observed in, beside what happens at its end."""
    ends = {c.name.lower(): c for c in columns if c.kind == "number" and not any(map(YEAR.fullmatch, c.some))}
    observed = any(column.named(words_of.EVENTS) for column in columns)
    names = {ends[name].name for name in ("start", "stop")} if observed and {"start", "stop"} <= set(ends) else set()
    return [
        Guess("sensitive", "an end of the time of observation, judging by its name and the event beside it", "likely")
        if column.name in names and guess.sure == "unsure"
        else guess
        for column, guess in zip(columns, guesses, strict=True)
    ]


def _guess(column: RawColumn) -> Guess:
    guessed = _identifier(column) or _harmless(column) or _named(column) or _by_categories(column) or _by_shape(column)
    if not column.by_label:
        return guessed
    return replace(guessed, reason=guessed.reason.replace("its name", "its label").replace("the name", "the label"))


def _identifier(column: RawColumn) -> Guess | None:
    if SAVED_INDEX.fullmatch(column.name):
        return Guess("identifier", "a row index saved with the table", "sure")
    if not column.some:
        return None
    private = column.private
    if (values := column.recognised) and not values.place:
        return Guess("identifier", values.sentence, "sure")
    if column.named(words_of.REACHED) and column.few_share and not private:
        return Guess("identifier", "the name suggests a direct identifier", "sure")
    visible = column.named(words_of.PLACES) or column.named(words_of.PERSONAL)
    if column.named(words_of.NAMED) and not visible and _share(PERSON, column.some) >= 0.8:
        return Guess("identifier", "names of people, judging by its name and its values", "sure")
    if column.numbers_the_rows:
        return Guess("identifier", "numbers the rows", "sure")
    if values is None and column.named(words_of.KEYED) and not private and column.kind != "date":
        many_values = column.distinct > FEW
        if column.named(words_of.PEOPLE) and (many_values or column.few_share):
            return Guess("identifier", PERSON_KEY, "sure")
        if many_values and column.few_share:
            return Guess("identifier", "a key, judging by its name, and few records share a value", "likely")
    return None


def _harmless(column: RawColumn) -> Guess | None:
    if not column.texts:
        return Guess("plain", "empty", "sure")
    if column.distinct == 1 and not column.nulls and column.records >= CROWD:
        return Guess("plain", "the same value in every record", "sure")
    weighs = column.named(words_of.SAMPLING) and not column.named(words_of.WHEN) and column.kind == "number"
    if weighs and not column.looks_like_kilograms:
        return Guess(
            "quasi",
            f"a sampling weight, judging by its name; {SPLITTING}, as estimates may need it",
            "likely",
        )
    return None


def _named(column: RawColumn) -> Guess | None:
    """Guess by the name. Private matters come before known ones, but dates and ages are always known."""
    if column.recognised is not None:
        return Guess("quasi", f"{column.recognised.kind}: a place, which others may know", "sure")
    if column.kind == "date" or column.named(words_of.WHEN):
        return Guess("quasi", "a date or an age, which others may know", "sure" if column.kind == "date" else "likely")
    if column.named(words_of.DEATHS) and column.kind in ("number", "code") and column.distinct > FEW:
        return Guess("quasi", "when somebody died, which others may know", "likely")
    if column.named(words_of.GRADES) and column.kind == "number" and FEW < column.distinct <= YEARS:
        return Guess("quasi", "years at school, judging by its name and number of values", "likely")
    if column.private:
        if column.kind == "text" and column.nearly_unique:
            return Guess(
                "identifier", "private, judging by its name, but nearly every record has a different text", "likely"
            )
        exact = "; exact values may also identify people" if column.kind == "number" and column.few_share else ""
        return Guess("sensitive", f"the name suggests {column.private}{exact}", "likely")
    for vocabulary, meaning in (
        (words_of.PERSONAL, "a personal attribute, which others may know"),
        (words_of.PLACES, "a place, which others may know"),
    ):
        if column.named(vocabulary):
            if column.kind == "text" and column.nearly_unique:
                return Guess("identifier", "nearly every record has a different value", "likely")
            return Guess("quasi", f"{meaning}, judging by its name", "sure")
    if column.named(words_of.SAMPLING):  # kilograms, as the shape told
        return Guess("quasi", "visible to others, judging by its name and number of values", "likely")
    if column.named(words_of.NAMED):
        return Guess("quasi", "a name, judging by its column name, though the values do not look like names", "unsure")
    numbered = any(map(str.isdigit, column.name))  # item_7 is an answer, item says which answer a record is about
    if column.named(words_of.TECHNICAL) and not column.few_share and not numbered:
        return Guess("quasi", f"about the study, judging by its name; {SPLITTING}", "likely")
    return None


def _by_categories(column: RawColumn) -> Guess | None:
    """Guess by the labels of most of its values."""
    label_words = [words(label) for label in column.categories.values()]

    def speak(vocabulary: words_of.WordList) -> bool:
        return 2 * sum(any(map(vocabulary.fullmatch, words_of_label)) for words_of_label in label_words) > len(
            label_words
        )

    if speak(words_of.PERSONAL):
        return Guess("quasi", "a personal attribute, judging by the labels of its values", "likely")
    if speak(words_of.HEALTH):
        return Guess("sensitive", "health, judging by the labels of its values", "likely")
    return None


def _by_shape(column: RawColumn) -> Guess:
    """Guess by the values: what nothing is known about, an outsider may know."""
    if column.kind == "text" and sum(map(len, column.some)) > LONG * len(column.some):
        return Guess("identifier", "long texts may contain anything, including names", "likely")
    if column.nearly_unique and column.kind in ("text", "code"):
        return Guess("identifier", "nearly every record has a different value", "likely")
    if column.filled >= ENOUGH and column.counts_up:
        return Guess("identifier", "consecutive numbers, a different one for every record", "likely")
    if column.kind in ("code", "text"):
        return Guess("quasi", f"a {column.kind} that may help to identify people", "unsure")
    if column.kind == "number":
        return Guess("quasi", "a measurement or a count; its name does not say whether others know it", "unsure")
    return Guess("quasi", "a category; its name does not say whether others know it", "unsure")


def _share(pattern: re.Pattern[str], texts: Sequence[str]) -> float:
    return sum(1 for text in texts if pattern.fullmatch(text)) / len(texts)


def _speaks(name_words: frozenset[str]) -> bool:
    """Return whether one of the words is in the vocabulary."""
    return any(word_list.fullmatch(word) for word_list in words_of.ALL for word in name_words)
