"""What a released text covers: the single reader of releases, from shoal or another tool.

A text is read as a label at any level of its column's hierarchy; as a range, a set, a mask or a date, according to its
notation (``notation``); as a value of the original that was reformatted, such as 23.0 for 23 or a timestamp for a day;
or as saying nothing. If the hierarchy knows both a label and a value, it alone decides. A text that is a value of the
original covers no other value merely because that one is equal as a number or a date. Texts that cannot be read are
reported, and counted in cells by the caller: they must never pass as safe.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shoal.hierarchies.hierarchy import Hierarchy, Label, once_per_hierarchy
from shoal.notation.codec import Coded
from shoal.notation.forms import (
    DecimalMark,
    Moments,
    Range,
    day_order,
    decimal_mark,
    is_star,
    lists,
    read_date,
    read_mask,
    read_number,
    read_period,
    read_range,
    released_mark,
    released_number,
)
from shoal.notation.labels import days_of, read_set

# Words for a suppressed cell, if the original has no such value.
NOTHING = frozenset({
    "", "?", "-", "--", ".", "..", "any", "all", "na", "n/a", "n.a.", "nan", "nat", "null", "none", "missing",
    "unknown", "suppressed", "[suppressed]", "(suppressed)", "redacted", "[redacted]", "(redacted)", "hidden", "masked",
})  # fmt: skip

CoveringTexts = list[set[int]]
Key = TypeVar("Key")


def normalized_text(text: str) -> str:
    """Normalize a text: remove outer and repeated spaces, and upper case."""
    return " ".join(text.split()).casefold()


def unread_cells(understood: NDArray[np.bool_], released: Coded) -> int:
    """Count the cells of a column with a text that could not be read; a null is not a text."""
    counts = np.bincount(released.codes[released.codes >= 0], minlength=len(understood))
    return int(counts[~understood].sum())


class Reader:
    """The released texts of a column, by number, matched with the values that they may cover.

    ``base`` has the distinct values of the original: they show whether the column contains numbers or dates, and which
    texts are values themselves. ``hierarchies``: the first one that knows a value gives its labels. ``ignored``: leaves
    that are not values of the original. ``freely``: whether texts that match no value of the original may still be
    read: NA, any and the like as saying nothing, and 351* as 35138. That requires all values of the original, and must
    not be used to decide whether a release is safe. ``mark``: the decimal mark of the data, if the policy names it: the
    values then have points, as in shoal's releases, while another tool may have kept the mark.
    """

    def __init__(
        self,
        released: Sequence[str],
        base: Collection[str],
        hierarchies: Sequence[Hierarchy] = (),
        *,
        ignored: Collection[str] = (),
        freely: bool = True,
        mark: DecimalMark | None = None,
    ) -> None:
        self.released, self.hierarchies = released, hierarchies
        self._base = frozenset(base)
        self._labels = [_labels(hierarchy, ignored) if ignored else _all_labels(hierarchy) for hierarchy in hierarchies]
        self._known_texts = self._base.union(*self._labels)
        values = list(self._base)
        self._marks: tuple[DecimalMark, DecimalMark] = (
            "." if mark else decimal_mark(values),
            decimal_mark(released) if mark is None else released_mark(released, self._base, mark),
        )
        self._order = day_order(values)
        self._dates: dict[str, Moments | None] = {}
        self.numeric = _majority((read_number(text, self._marks[0]) is not None for text in values), len(values))
        self.dated = not self.numeric and _majority((self._date(text) is not None for text in values), len(values))
        # Members of a set may themselves be labels or ranges: they are read as separate texts, after the released ones.
        self._texts: list[str] = list(released)
        self._owners: list[list[int]] = [[i] for i in range(len(released))]
        self._members_of_sets = False
        self._number = {text: i for i, text in enumerate(released)}
        unknown = any(text not in self._known_texts for text in released)
        known_loosely = {normalized_text(text) for text in self._known_texts} if unknown else set()
        self.everything = self._texts_that_say_nothing(known_loosely, freely)
        silent = set(self.everything)
        for i, text in enumerate(released):
            for member in () if i in silent else self._members(text, known_loosely):
                self._add_member(member, i)
        self._strange = [i for i, text in enumerate(self._texts) if text not in self._known_texts and i not in silent]
        self._label_texts = [{i for i, text in enumerate(self._texts) if text in labels} for labels in self._labels]
        self._loose = _by_key((normalized_text(self._texts[i]), i) for i in self._strange)
        self._read_numbers()
        self._read_masks(freely)
        self._of_base = dict(zip(values, self._covering(values), strict=True))
        self._read = silent.union(*self._of_base.values())
        self._read |= {i for i in range(len(released)) if i not in self._read and self._is_in_notation(i)}

    def _texts_that_say_nothing(self, known_loosely: set[str], freely: bool) -> list[int]:
        tops = {hierarchy.top for hierarchy in self.hierarchies}
        labels = set[str]().union(*self._labels)  # ** may be a code of two letters if others have three
        return [
            i
            for i, text in enumerate(self.released)
            if text in tops
            or (is_star(text) and text not in labels)
            or (freely and self._says_nothing(text, known_loosely))
        ]

    def _is_in_notation(self, i: int) -> bool:
        """Return whether a text is a number, range or date in a column of these, even if no value lies in it."""
        if self.numeric:
            return i in self._is_number or i in self._is_range
        return self.dated and read_period(self.released[i], self._order) is not None

    @property
    def understood(self) -> NDArray[np.bool_]:
        """Return, per released text, whether it could be read."""
        out = np.zeros(len(self.released), np.bool_)
        out[list(self._read)] = True
        return out

    def value(self, text: str) -> Decimal | None:
        """Return a value of the original as a number."""
        return read_number(text, self._marks[0])

    def number(self, text: str) -> Decimal | None:
        """Return a released text as a number."""
        return released_number(text, self._marks[1])

    def covering(self, values: Sequence[str]) -> CoveringTexts:
        """For each value, return the numbers of the released texts that cover it, except those that say nothing."""
        # What covers a value depends on which others there are: 39.0 is 039 only if there is no 39.
        if set(values) == self._base:
            return [self._of_base[value] for value in values]
        return self._covering(values)

    def _covering(self, values: Sequence[str]) -> CoveringTexts:
        covering: CoveringTexts = [set() for _ in values]
        keepers = self._by_hierarchy(values, covering)
        for n, value in enumerate(values if self._loose or self._masked else ()):
            hits = {number} if (number := self._number.get(value)) is not None else set()
            if self._loose:
                hits.update(self._loose.get(normalized_text(value), ()))
            if self._masked:
                hits.update(self._masks(value))
            if (keeper := keepers[n]) is not None:  # which has put its labels where they belong
                hits -= {i for i in hits & self._label_texts[keeper] if self._texts[i] != value}
            covering[n] |= hits
        if not self._loose and not self._masked:  # nothing but the text itself
            for hits, number in zip(covering, map(self._number.get, values), strict=True):
                if number is not None:
                    hits.add(number)
        for i, contained in self._in_ranges(values, None in keepers):
            settling = {keeper for keeper, texts in enumerate(self._label_texts) if i in texts}
            for n in contained:
                if not settling or keepers[n] not in settling:
                    covering[n].add(i)
        silent = set(self.everything)
        if self._members_of_sets:  # which stand for their sets
            covering = [{owner for i in hits for owner in self._owners[i]} for hits in covering]
        return [hits - silent for hits in covering] if silent else covering

    def _by_hierarchy(self, values: Sequence[str], covering: CoveringTexts) -> list[int | None]:
        """Add the labels above each value, and record which hierarchy knows it."""
        keepers: list[int | None] = [None] * len(values)
        for h, hierarchy in enumerate(self.hierarchies):
            mine = [n for n, is_known in enumerate(hierarchy.knows(values)) if is_known and keepers[n] is None]
            leaves = hierarchy.encode([values[n] for n in mine])
            for level in range(hierarchy.n_levels):
                labels = hierarchy.labels[level]
                texts_of = {
                    code: texts for code in self._candidate_codes(labels) if (texts := self._named(labels[code]))
                }
                if texts_of:
                    for n, code in zip(mine, hierarchy.table[level][leaves].tolist(), strict=True):
                        if code in texts_of:
                            covering[n].update(texts_of[code])
            for n in mine:
                keepers[n] = h
        return keepers

    def _candidate_codes(self, labels: Sequence[Label]) -> Iterable[int]:
        """Return the codes of the labels that may be released texts."""
        if self._loose:
            return range(len(labels))
        return [code for code, label in enumerate(labels) if label in self._number]

    def _named(self, label: Label) -> list[int]:
        if label is None:
            return []
        exact = self._number.get(label)
        return [
            *([] if exact is None else [exact]),
            *(self._loose.get(normalized_text(label), ()) if self._loose else ()),
        ]

    # ── How each text is read ───────────────────────────────────────────────────────────────────────────────

    def _says_nothing(self, text: str, loose: set[str]) -> bool:
        if text in self._known_texts or (word := normalized_text(text)) in loose:
            return False
        return word in NOTHING or (len(word) > 1 and is_star(read_mask(text) or ""))

    def _members(self, text: str, loose: set[str]) -> tuple[str, ...]:
        if (members := read_set(text.strip())) is not None:
            return members
        if text not in self._known_texts and not (self.dated and "/" in text):  # a range of dates, not a list of two
            for members in lists(text):
                if all(member in self._known_texts or normalized_text(member) in loose for member in members):
                    return members
        return ()

    def _add_member(self, member: str, owner: int) -> None:
        number = self._number.setdefault(member, len(self._texts))
        if number == len(self._texts):
            self._texts.append(member)
            self._owners.append([])
        self._owners[number].append(owner)
        self._members_of_sets = True

    def _read_numbers(self) -> None:
        strange, mark = set(self._strange), self._marks[1]
        self._ranges: list[tuple[int, Range]] = []
        self._periods: list[tuple[int, Moments]] = []
        self._is_number: dict[int, Decimal] = {}
        for i, text in enumerate(self._texts):
            if i in strange and (x := released_number(text, mark)) is not None:
                self._is_number[i] = x
            elif (span := read_range(text, mark)) is not None:
                self._ranges.append((i, span))
            if self.dated and i in strange and (period := read_period(text, self._order)) is not None:
                self._periods.append((i, period))
        self._is_range = {i for i, _ in self._ranges}
        self._numbers = _by_key((x, i) for i, x in self._is_number.items())

    def _in_ranges(self, values: Sequence[str], strangers: bool) -> Iterator[tuple[int, Iterable[int]]]:
        """Return the number of each text that is a number, range or period, with those of the values it contains.

        If the hierarchies know all values, ``strangers`` is False and their labels are not read again.
        """
        settled = set() if strangers or not self._label_texts else set.intersection(*self._label_texts)
        ranges = [(i, ends) for i, ends in self._ranges if i not in settled]
        if ranges or self._numbers:
            read = [(x, n) for n, text in enumerate(values) if (x := read_number(text, self._marks[0])) is not None]
            points = sorted(read)
            xs = [x for x, _ in points]
            for i, (first, last, first_within, last_within) in ranges:
                start = bisect_left(xs, first) if first_within else bisect_right(xs, first)
                end = bisect_right(xs, last) if last_within else bisect_left(xs, last)
                yield i, [n for _, n in points[start:end]]
            if self._numbers:
                # 39.0 is 39 and not 039, which is a code; it is 039 only if there is no 39.
                shortest = {x for x, n in points if not values[n].strip().startswith("0") or x < 1}
                for x, n in points:
                    if x not in shortest or not values[n].strip().startswith("0") or x < 1:
                        yield from ((i, (n,)) for i in self._numbers.get(x, ()))
        if self._periods:
            moments = sorted((m, n) for n, text in enumerate(values) if (m := self._date(text)) is not None)
            for i, (begin, end_) in self._periods:
                start, end = (bisect_left(moments, ((at, at), -1)) for at in (begin, end_))
                yield i, [n for (_, last), n in moments[start:end] if last <= end_]
        yield from self._between_labels(values)

    def _date(self, text: str) -> Moments | None:
        if text not in self._dates:
            self._dates[text] = self._dated(text)
        return self._dates[text]

    def _dated(self, text: str) -> Moments | None:
        """Parse a day; for a text in a custom format, use the first label of the hierarchy."""
        if (moments := read_date(text, self._order)) is not None:
            return moments
        for hierarchy in self.hierarchies:
            if hierarchy.leaf_order == "time" and hierarchy.knows([text])[0]:
                for level, code in enumerate(hierarchy.table[:, hierarchy.encode([text])[0]]):
                    label = hierarchy.labels[level][code]
                    if label is not None and (moments := read_period(label)) is not None:
                        return moments
        return None

    def _between_labels(self, values: Sequence[str]) -> Iterator[tuple[int, Iterable[int]]]:
        """Read ranges of dates whose ends are labels of one level, in any notation."""
        hierarchies = [h for h in self.hierarchies if h.leaf_order == "time"]
        candidates = [i for i in self._strange if "/" in self._texts[i]] if hierarchies else []
        if not candidates:
            return
        places = defaultdict(list)
        for n, value in enumerate(values):
            places[value].append(n)
        for hierarchy in hierarchies:
            ends = _ends(hierarchy)
            of_leaf = [places.get(leaf or "", ()) for leaf in hierarchy.leaves]
            for i in candidates:
                text = self._texts[i]
                for at in (position for position, letter in enumerate(text) if letter == "/"):
                    for of_level in ends:
                        first, last = of_level.get(text[:at]), of_level.get(text[at + 1 :])
                        if first and last:
                            yield i, chain.from_iterable(of_leaf[first[0] : last[-1] + 1])

    def _read_masks(self, freely: bool) -> None:
        """Group masks by what is hidden: a mask that ends or begins with stars also covers shorter values."""
        self._masked: dict[str, list[int]] = defaultdict(list)
        self._lengths: set[tuple[str, int]] = set()
        strange = set(self._strange)
        for i, text in enumerate(self._texts):
            masked = read_mask(text) if i in strange else text if "*" in text else None
            if masked is not None and not is_star(masked):
                self._masked[masked].append(i)
        self._ends: set[tuple[str, int, int]] = set()  # the masked side, characters kept, and of the whole
        self._inner: dict[int, set[frozenset[int]]] = defaultdict(set)  # by length, what is hidden
        self._openings: dict[tuple[str, str], list[int]] = {}
        for masked in self._masked:
            for side, visible in (("right", masked.rstrip("*")), ("left", masked.lstrip("*"))):
                if visible != masked and "*" not in visible:
                    self._ends.add((side, len(visible), len(masked)))
            if "*" in masked.rstrip("*") and "*" in masked.lstrip("*"):
                self._inner[len(masked)].add(frozenset(i for i, letter in enumerate(masked) if letter == "*"))
        if not freely:
            return
        # 351* for 35138: if the number of stars fits no value, they cover any number of characters.
        fitting = {i for value in self._base for i in self._masks(value)} if self._masked else set()
        for masked, texts in self._masked.items():
            if not fitting.intersection(texts) and "*" not in (visible := masked.strip("*")) and visible:
                side = "left" if masked.startswith("*") else "right"
                if masked.startswith("*") != masked.endswith("*"):
                    self._openings.setdefault((side, visible), []).extend(texts)
        self._lengths = {(side, len(visible)) for side, visible in self._openings}

    def _masks(self, value: str) -> Iterator[int]:
        text = value.strip()
        for side, n_visible, whole in self._ends:
            if n_visible <= len(text) <= whole:
                stars = "*" * (whole - n_visible)
                yield from self._masked.get(
                    text[:n_visible] + stars if side == "right" else stars + text[len(text) - n_visible :], ()
                )
        for hidden in self._inner.get(len(text), ()):
            masked = "".join("*" if i in hidden else letter for i, letter in enumerate(text))
            yield from self._masked.get(masked, ())
        for side, n in self._lengths:
            visible = text[:n] if side == "right" else text[len(text) - n :]
            yield from self._openings.get((side, visible), ())


def _labels(hierarchy: Hierarchy, ignored: Collection[str]) -> set[str]:
    """Return all labels of the leaves, except ignored ones."""
    listed = [leaf for leaf, text in enumerate(hierarchy.leaves) if text is None or text not in ignored]
    out = {text for text in (hierarchy.leaves[leaf] for leaf in listed) if text is not None}
    for codes, labels in zip(hierarchy.table, hierarchy.labels, strict=True):
        out.update(label for code in np.unique(codes[listed]).tolist() if (label := labels[code]) is not None)
    return out


@once_per_hierarchy
def _all_labels(hierarchy: Hierarchy) -> set[str]:
    return _labels(hierarchy, ())


def _by_key(pairs: Iterator[tuple[Key, int]]) -> dict[Key, list[int]]:
    out: dict[Key, list[int]] = defaultdict(list)
    for key, i in pairs:
        out[key].append(i)
    return dict(out)


def _majority(answers: Iterator[bool], n: int) -> bool:
    """Return whether most of ``n`` answers are yes, and ask no further than that takes."""
    yes = no = 0
    for answer in answers:
        yes, no = yes + answer, no + (not answer)
        if 2 * yes > n or 2 * no >= n:
            break
    return 2 * yes > n


def _ends(hierarchy: Hierarchy) -> list[dict[str, list[int]]]:
    """Return, by level, the leaves of a label, also under its first and last day."""
    out = []
    for codes, labels in zip(hierarchy.table, hierarchy.labels, strict=True):
        of_level: dict[str, list[int]] = defaultdict(list)
        for leaf, code in enumerate(codes.tolist()):
            label = labels[code]
            if label is not None and leaf != hierarchy.uncovered:
                for end in {label, *days_of(label)}:
                    of_level[end].append(leaf)
        out.append(of_level)
    return out


class LeavesBehind:
    """The leaves of a hierarchy that each of some texts covers."""

    def __init__(self, reader: Reader, behind: list[set[int]]) -> None:
        self.behind = behind
        self.everything = set(reader.everything)

    @classmethod
    def read(
        cls,
        hierarchy: Hierarchy,
        texts: Sequence[str],
        *,
        nearest: bool = False,
        freely: bool = True,
        mark: DecimalMark | None = None,
    ) -> LeavesBehind:
        """Read the texts with the hierarchy that was built on the original."""
        listed = [(leaf, text) for leaf, text in enumerate(hierarchy.leaves) if text is not None]
        listed = [(leaf, text) for leaf, text in listed if leaf != hierarchy.uncovered]
        reader = Reader(texts, {text for _, text in listed}, [hierarchy], freely=freely, mark=mark)
        behind: list[set[int]] = [set() for _ in texts]
        for (leaf, _), covering in zip(listed, reader.covering([text for _, text in listed]), strict=True):
            for i in covering:
                behind[i].add(leaf)
        if nearest and hierarchy.leaf_order == "numeric":
            read = sorted((x, leaf) for leaf, text in listed if (x := reader.value(text)) is not None)
            for i, text in enumerate(texts):
                if not behind[i] and read and (mean := reader.number(text)) is not None:
                    at = bisect_left(read, (mean, 0))
                    near = read[max(at - 1, 0) : at + 1] or read[-1:]
                    behind[i].add(min((abs(x - mean), leaf) for x, leaf in near)[1])
        return cls(reader, behind)
