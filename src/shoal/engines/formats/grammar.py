"""The grammar of CSV files, defined once: every reader reads exactly the records that this scan accepts.

Strict RFC 4180. A quote opens a field only at the start of the field; inside, a quote is doubled, and the closing quote
is followed by a separator, the end of the line or the end of the file. In an unquoted field a quote is an ordinary
character. LF, CRLF and CR end a record, even mixed in one file. Every record has as many fields as the header,
including empty ones at the end. A blank line is a missing value if there is one column, and is ignored if there are
several. NUL bytes are not allowed.

The scan reads a file once, in pieces and in constant memory. It counts the records, finds the line of the first error,
and can rewrite the records in a form that all readers interpret alike: LF, no blank lines, and quotes around fields
that begin with blanks and a quote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled, compiled_within
from shoal.errors import DataError

LONGEST_RECORD = 2**28  # bytes: the limits of the readers
SHORT = 2**22  # bytes of a file from which on its scan is worth compiling

Bytes = NDArray[np.uint8]
State = NDArray[np.int64]

# The kinds of bytes.
PLAIN, SEPARATOR, QUOTE, CR, LF, NUL = range(6)

# The position of the scan in a record. LEADING: only blanks so far; REQUOTED: unquoted, but written with quotes.
RECORD, FIELD, LEADING, UNQUOTED, REQUOTED, QUOTED, CLOSING = range(7)

# The state carried from one piece of the file to the next.
(
    POSITION,
    SEPARATORS,  # in the record so far
    WIDTH,  # fields of the header; 0 before it ends
    LINE,
    FIRST_LINE,  # of the record
    START,  # of the record, in bytes from the beginning
    OFFSET,  # of the piece; after a fault, of the byte where it was found, however the file was cut into pieces
    RECORDS,  # complete ones, including the header
    AFTER_CR,
    ENDED_LF,
    ENDED_CRLF,
    ENDED_CR,
    BLANK,  # lines that were skipped
    BLANK_FIRST,  # of these, before the header
    LONGEST,
    SPACED,  # fields that begin with blanks and a quote
    PENDING,  # blanks that are not written yet
    HEADER_START,
    HEADER_END,
    COMMAS,  # separators in this line of a quoted field
    INNER,  # line breaks in this quoted field
    BREAKS,  # in all of them
    SWALLOWED,  # lines within quoted fields that look like records
    SWALLOWED_LINE,
    RAGGED,
    RAGGED_LINE,
    RAGGED_FOUND,
    FAULT,
    FAULT_LINE,
    SIZE,
) = range(30)

HAS_NUL, BEHIND_QUOTE, TOO_LONG, NEVER_CLOSED = range(1, 5)


@compiled_within
def _held_back(s: State, out: Bytes, n_out: int) -> int:
    """Write the blanks that were held back if there is room, and clear them."""
    if len(out) > 0:
        for _ in range(s[PENDING]):
            out[n_out] = 32
            n_out += 1
    s[PENDING] = 0
    return n_out


@compiled_within
def _end_field(s: State, out: Bytes, n_out: int, state_of_field: int) -> int:
    """Write the end of a field: blanks that were held back, and the closing quote of a requoted field."""
    n_out = _held_back(s, out, n_out)
    if len(out) > 0 and state_of_field == REQUOTED:
        out[n_out] = 34
        n_out += 1
    return n_out


@compiled_within
def _break_in_field(s: State) -> None:
    """Count a line that ends within a quoted field, and whether it looks like a record."""
    s[LINE] += 1
    # The first of its lines began before the quote.
    if s[INNER] > 0 and s[WIDTH] > 1 and s[COMMAS] == s[WIDTH] - 1:
        if s[SWALLOWED] == 0:
            s[SWALLOWED_LINE] = s[LINE] - 1
        s[SWALLOWED] += 1
    s[INNER] += 1
    s[BREAKS] += 1
    s[COMMAS] = 0


@compiled
def scanned(text: Bytes, classes: Bytes, s: State, out: Bytes) -> int:
    """Scan one piece; if ``out`` has room, write its records there and return how many bytes they take."""
    writing = len(out) > 0
    n, n_out, i = len(text), 0, 0
    position = s[POSITION]
    while i < n:
        kind = classes[text[i]]
        if kind == QUOTE and position <= FIELD and not writing:  # most fields with quotes have no other marks in them
            end = i + 1
            while end < n and classes[text[end]] == PLAIN:
                end += 1
            if end < n and classes[text[end]] == QUOTE:
                if position == RECORD:
                    s[FIRST_LINE], s[START] = s[LINE], s[OFFSET] + i
                s[COMMAS] = s[INNER] = s[AFTER_CR] = 0
                position = CLOSING
                i = end + 1
                if i < n and classes[text[i]] == SEPARATOR:
                    s[SEPARATORS] += 1
                    position = FIELD
                    i += 1
                continue
        if kind == PLAIN:
            begin = i
            i += 1
            while i < n and classes[text[i]] == PLAIN:
                i += 1
            s[AFTER_CR] = 0
            if position == CLOSING:
                s[FAULT], s[FAULT_LINE] = BEHIND_QUOTE, s[LINE]
                i = begin
                break
            if position <= LEADING:
                if position == RECORD:
                    s[FIRST_LINE], s[START] = s[LINE], s[OFFSET] + begin
                position = UNQUOTED
                first = begin
                while first < i and text[first] == 32:
                    first += 1
                if first == i:
                    position = LEADING
                    s[PENDING] += i - begin
                    continue
                n_out = _held_back(s, out, n_out)
            if writing:
                for j in range(begin, i):
                    out[n_out] = text[j]
                    n_out += 1
            continue
        if kind == NUL:
            s[FAULT], s[FAULT_LINE] = HAS_NUL, s[LINE]
            break
        if kind == SEPARATOR:
            if position == QUOTED:
                s[COMMAS] += 1
            else:
                if position == RECORD:
                    s[FIRST_LINE], s[START] = s[LINE], s[OFFSET] + i
                s[SEPARATORS] += 1
                n_out = _end_field(s, out, n_out, position)
                position = FIELD
            if writing:
                out[n_out] = text[i]
                n_out += 1
            s[AFTER_CR] = 0
        elif kind == QUOTE:
            if position == RECORD:
                s[FIRST_LINE], s[START] = s[LINE], s[OFFSET] + i
            if position <= FIELD:
                position = QUOTED
                s[COMMAS] = s[INNER] = 0
            elif position == QUOTED:
                position = CLOSING
            elif position == CLOSING:
                position = QUOTED
            elif position == LEADING:
                s[SPACED] += 1
                position = REQUOTED
                if writing:
                    out[n_out] = 34
                    n_out += 1
                n_out = _held_back(s, out, n_out)
            if writing:
                out[n_out] = 34
                n_out += 1
                if position == REQUOTED:
                    out[n_out] = 34
                    n_out += 1
            s[AFTER_CR] = 0
        else:
            second = kind == LF and s[AFTER_CR] == 1  # of CRLF
            s[AFTER_CR] = 1 if kind == CR else 0
            if position == QUOTED:
                if writing:
                    out[n_out] = text[i]
                    n_out += 1
                if not second:
                    _break_in_field(s)
            elif second:
                s[ENDED_CR] -= 1
                s[ENDED_CRLF] += 1
            else:
                n_out = _end_field(s, out, n_out, position)
                if kind == CR:
                    s[ENDED_CR] += 1
                else:
                    s[ENDED_LF] += 1
                if position == RECORD and s[WIDTH] != 1:
                    s[BLANK] += 1
                    if s[WIDTH] == 0:
                        s[BLANK_FIRST] += 1
                else:
                    if position == RECORD:
                        s[FIRST_LINE], s[START] = s[LINE], s[OFFSET] + i
                    _end_record(s, i)
                    if writing:
                        out[n_out] = 10
                        n_out += 1
                    if s[FAULT]:
                        break
                s[LINE] += 1
                position = RECORD
        i += 1
    s[POSITION] = position
    s[OFFSET] += i
    if s[FAULT] == 0 and position != RECORD and s[OFFSET] - s[START] > LONGEST_RECORD:
        s[FAULT], s[FAULT_LINE] = TOO_LONG, s[FIRST_LINE]
    return n_out


@compiled_within
def _end_record(s: State, i: int) -> None:
    fields = s[SEPARATORS] + 1
    if s[WIDTH] == 0:
        s[WIDTH] = fields
        s[HEADER_START], s[HEADER_END] = s[START], s[OFFSET] + i
    elif fields != s[WIDTH]:
        if s[RAGGED] == 0:
            s[RAGGED_LINE], s[RAGGED_FOUND] = s[FIRST_LINE], fields
        s[RAGGED] += 1
    length = s[OFFSET] + i - s[START]
    s[LONGEST] = max(s[LONGEST], length)
    if length > LONGEST_RECORD:
        s[FAULT], s[FAULT_LINE] = TOO_LONG, s[FIRST_LINE]
    s[RECORDS] += 1
    s[SEPARATORS] = 0


def _well_quoted(kinds: Bytes, quotes: NDArray[np.int64]) -> bool:
    """Return whether the ``quotes`` of some lines enclose whole fields, without a line break in any.

    They open and close in turn: a doubled quote closes the field and opens it again.
    """
    opening, closing = quotes[::2], quotes[1::2]
    if len(opening) != len(closing):
        return False
    before = np.where(opening > 0, kinds[opening - 1], LF)
    first_of_field = (before == SEPARATOR) | (before == LF)
    first_of_field[1:] |= opening[1:] == closing[:-1] + 1
    after = kinds[closing + 1]  # the text ends with a line break
    last_of_field = (after == SEPARATOR) | (after == CR) | (after == LF)
    last_of_field[:-1] |= opening[1:] == closing[:-1] + 1
    line_ends = np.flatnonzero((kinds == LF) | (kinds == CR))
    outside = np.searchsorted(quotes, line_ends) % 2 == 0
    return bool(first_of_field.all() and last_of_field.all() and outside.all())


def _fields_of(
    separators: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64], width: int
) -> NDArray[np.int64]:
    """Count the fields of lines, given their separators; most often all lines have the ``width`` of the header."""
    n = width - 1
    if n > 0 and len(separators) == n * len(ends):
        by_line = separators.reshape(len(ends), n)
        if (by_line[:, 0] >= begins).all() and (by_line[:, -1] < ends).all():
            return np.full(len(ends), width)
    n_fields: NDArray[np.int64] = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
    return n_fields


@dataclass(frozen=True)
class FoundGrammar:
    """The properties of a file that follows the grammar."""

    records: int  # without the header
    longest: int  # bytes of its longest record
    header: tuple[int, int]  # its position, in bytes of the UTF-8 text
    ends: tuple[str, ...]  # how its lines end: LF, CRLF, CR
    plain: bool  # interpreted alike by all readers without rewriting
    breaks: bool  # whether quoted values contain line breaks
    swallowed: tuple[int, int]  # lines within quoted values that look like records, and the first of them


class Scan:
    """A scan in progress: ``feed`` it the pieces of a UTF-8 file, then ask what was ``found``."""

    def __init__(self, name: str, separator: str) -> None:
        self._name, self._separator = name, separator
        self._classes = np.zeros(256, np.uint8)
        marks = {separator: SEPARATOR, '"': QUOTE, "\r": CR, "\n": LF, "\0": NUL}
        for mark, kind in marks.items():
            self._classes[ord(mark)] = kind
        self._state = np.zeros(SIZE, np.int64)
        self._state[[LINE, FIRST_LINE]] = 1
        self._rest = b""  # a line that has not ended, if all lines so far are simple

    @property
    def line(self) -> int:
        """The current line of the scan."""
        return int(self._state[LINE])

    @property
    def header_read(self) -> bool:
        """Whether the header is complete."""
        return bool(self._state[WIDTH])

    def feed(self, piece: Any, *, writing: bool = False) -> bytes:
        """Scan the next piece; return its records in plain spelling if they are to be written."""
        piece = self._rest + piece if self._rest else piece
        text = np.frombuffer(piece, np.uint8)
        end = bytes(piece).rfind(b"\n") + 1
        if self._simple(text, end):
            self._rest = bytes(piece[end:])
            return self._feed_lines(text[:end], writing) if end else b""
        self._rest = b""
        return self._scanned(text, writing)

    def _scanned(self, text: Bytes, writing: bool) -> bytes:
        """Scan a text byte by byte."""
        room = 2 * len(text) + int(self._state[PENDING]) + 8 if writing else 0
        out = np.empty(room, np.uint8)
        n = scanned(text, self._classes, self._state, out)
        if self._state[FAULT]:
            raise self._fault()
        return out[:n].tobytes()

    def _simple(self, text: Bytes, end: int) -> bool:
        """Return whether a text of a short file begins a record and is made of simple fields and LF, or of CRLF.

        A field is simple if it has no quotes, or quotes around it and no line break in it; in a long file, only without
        quotes and CR. ``end`` is where the last line of the text ends.
        """
        s = self._state
        if s[POSITION] != RECORD or s[AFTER_CR]:
            return False
        if s[OFFSET] + len(text) > SHORT:
            return end > 0 and not ((text == 34) | (text == 13) | (text == 0)).any()
        kinds = self._classes[text]
        if (kinds == NUL).any():
            return False
        quotes = np.flatnonzero(kinds[:end] == QUOTE)
        if len(quotes) and not _well_quoted(kinds[:end], quotes):
            return False
        returns, breaks = np.count_nonzero(kinds == CR), np.flatnonzero(kinds[:end] == LF)
        return not returns or bool(returns == len(breaks) and breaks[0] and (text[breaks - 1] == 13).all())

    def _feed_lines(self, text: Bytes, writing: bool) -> bytes:
        """Apply ``scanned`` to whole lines that are simple, by NumPy.

        A short file is read before ``scanned`` is compiled, and lines without quotes are scanned sooner.
        """
        s = self._state
        breaks = np.flatnonzero(text == 10)
        two = int(text[breaks[0] - 1] == 13) if breaks[0] else 0  # whether a line ends with CRLF
        begins, ends = np.concatenate([[0], breaks[:-1] + 1]), breaks - two
        separators = text == ord(self._separator)
        if (quotes := text == 34).any():
            separators &= np.cumsum(quotes) % 2 == 0  # those within quotes are part of a value
        fields = _fields_of(np.flatnonzero(separators), begins, ends, int(s[WIDTH]))
        filled = ends > begins
        is_record = filled.copy()
        if s[WIDTH] == 0 and filled.any():
            header = int(filled.argmax())
            s[WIDTH], s[HEADER_START], s[HEADER_END] = fields[header], begins[header], ends[header]
            s[[HEADER_START, HEADER_END]] += s[OFFSET]
            s[BLANK_FIRST] += header
            is_record[header:] |= s[WIDTH] == 1  # of one column, a blank line is a missing value
        elif s[WIDTH] == 0:
            s[BLANK_FIRST] += len(ends)
        else:
            is_record |= s[WIDTH] == 1
        ragged = np.flatnonzero(is_record & (fields != s[WIDTH]))
        if len(ragged) and s[RAGGED] == 0:
            s[RAGGED_LINE], s[RAGGED_FOUND] = s[LINE] + ragged[0], fields[ragged[0]]
        if is_record.any():
            last = len(is_record) - 1 - int(is_record[::-1].argmax())
            s[FIRST_LINE], s[START] = s[LINE] + last, s[OFFSET] + begins[last]
        s[RAGGED] += len(ragged)
        s[BLANK] += np.count_nonzero(~is_record)
        s[LONGEST] = max(s[LONGEST], (ends - begins)[is_record].max(initial=0))
        s[RECORDS] += np.count_nonzero(is_record)
        s[[LINE, ENDED_CRLF if two else ENDED_LF]] += len(ends)
        s[OFFSET] += len(text)
        if not writing:
            return b""
        is_kept_byte = np.repeat(is_record, breaks - begins + 1)
        return bytes(text[is_kept_byte & (text != 13)])

    def end(self, *, writing: bool = False) -> bytes:
        """End the scan at the end of the file."""
        s = self._state
        rest = b""
        if b'"' in self._rest:  # it may be open
            last, self._rest = np.frombuffer(self._rest, np.uint8), b""
            rest = self._scanned(last, writing)
        if s[POSITION] == QUOTED:
            s[FAULT], s[FAULT_LINE] = NEVER_CLOSED, s[FIRST_LINE]
        elif s[POSITION] != RECORD or self._rest:  # a last line without a line end
            line_ends = s[[ENDED_LF, ENDED_CRLF, ENDED_CR]]
            rest += self.feed(b"\n", writing=writing)
            s[[ENDED_LF, ENDED_CRLF, ENDED_CR]] = line_ends
        if s[FAULT] or s[RAGGED]:
            raise self._fault()
        return rest

    @property
    def found(self) -> FoundGrammar:
        """Return the properties of the file."""
        s = [int(value) for value in self._state]
        counts = {"LF": s[ENDED_LF], "CRLF": s[ENDED_CRLF], "CR": s[ENDED_CR]}
        ends = tuple(end for end, n in counts.items() if n)
        # DuckDB takes the first line break, quoted or not, as the line end, and needs a field in each line.
        plain = ends in ((), ("LF",)) or (ends == ("CRLF",) and not s[BREAKS] and s[WIDTH] > 1)
        return FoundGrammar(
            max(0, s[RECORDS] - 1),
            s[LONGEST],
            (s[HEADER_START], s[HEADER_END]),
            ends,
            plain and not s[SPACED] and not s[BLANK],
            bool(s[BREAKS]),
            (s[SWALLOWED], s[SWALLOWED_LINE]),
        )

    def _fault(self) -> DataError:
        """Describe the first error by its line, never by its content."""
        s = [int(value) for value in self._state]
        name, line = self._name, s[FAULT_LINE]
        if s[RAGGED] and (not s[FAULT] or s[RAGGED_LINE] < line):
            return DataError(
                f"{name}: {s[RAGGED]} record(s) with another number of fields than the header "
                f"(first in line {s[RAGGED_LINE]}: {s[RAGGED_FOUND]} found, {s[WIDTH]} expected)",
                f"quote fields that contain the separator {self._separator!r}, or name another separator; an empty "
                "field at the end of a record counts too",
            )
        if s[FAULT] == HAS_NUL:
            return DataError(
                f"{name} contains a NUL byte (first in line {line})",
                "is it a text file? UTF-16 without a byte order mark needs its encoding named",
            )
        if s[FAULT] == BEHIND_QUOTE:
            return DataError(
                f"{name}: text follows a closing quote in line {line}",
                "within a quoted field a quote is written twice; if the quote before it is a stray one, remove that",
            )
        if s[FAULT] == TOO_LONG:
            return DataError(
                f"{name}: the record that starts in line {line} is longer than {LONGEST_RECORD // 2**20} MiB",
                "is a quote in it never closed?",
            )
        return DataError(
            f"{name}: a quote is never closed in the record that starts in line {line}",
            "close it, or double it if it is part of a value",
        )
