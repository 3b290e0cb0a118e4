"""What a released text stands for, whoever wrote it."""

import pyarrow as pa

from shoal.attacks.column_matching import read_known_column
from shoal.notation import codec
from shoal.policy import Policy


def texts(values):
    return codec.encode_texts("q", pa.chunked_array([pa.array(values, pa.string())]))


def column_matching(known, released, *, ground=None, spec=None, wildcard=False):
    """Per known value the released texts that stand for it."""
    policy = None
    if spec is not None:
        columns = {"q": {"role": "quasi", "hierarchy": spec}}
        policy = Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": 1}]})
    mine, theirs = texts(known), texts(released)
    base = None if ground is None else texts(ground)
    column = read_known_column("q", mine, theirs, base, policy, wildcard=wildcard)
    words = (*theirs.texts, None)
    out = []
    for code in mine.codes:
        kind = column.kind_of[code]
        out.append({words[t] for k, t in zip(column.kinds, column.texts, strict=True) if k == kind})
    return out, column


def test_ends_are_within_or_not():
    found, _ = column_matching(["20", "25", "30", "31"], ["[20, 30)", "(20, 30]", ">30"])
    assert found == [{"[20, 30)"}, {"[20, 30)", "(20, 30]"}, {"(20, 30]"}, {">30"}]


def test_masks_sets_stars_and_equals():
    found, _ = column_matching(["02138", "02141", "9"], ["0213*", "{02138, 9}", "*", "02141", "**141"])
    assert found == [{"0213*", "{02138, 9}", "*"}, {"02141", "**141", "*"}, {"{02138, 9}", "*"}]


def test_stars_inside_a_text():
    found, _ = column_matching(["64/04/12", "63/02/18", "64/4/1"], ["64/**/**", "63/**/**", "6*/04/1*"])
    assert found == [{"64/**/**", "6*/04/1*"}, {"63/**/**"}, set()]


def test_a_number_may_be_written_otherwise_unless_it_is_a_value_of_its_own():
    assert column_matching(["23", "5"], ["23.0", "5", "5.0", "20-29"])[0] == [{"23.0", "20-29"}, {"5", "5.0"}]
    assert column_matching(["5", "5.0"], ["5", "5.0"])[0] == [{"5"}, {"5.0"}]


def test_labels_of_a_hierarchy_cover_what_they_cover():
    spec = {"tree": {"*": {"care": ["nurse", "physician"], "trade": ["cook"]}}}
    found, column = column_matching(["nurse", "cook", "physician"], ["care", "trade", "nurse"], spec=spec)
    assert found == [{"care", "nurse"}, {"trade"}, {"care"}]
    assert column.unread == 0


def test_a_date_that_the_original_does_not_have_falls_into_the_same_month():
    found, _ = column_matching(
        ["1964-09-14", "1970-01-01"], ["1964-09"], ground=["1964-09-13"], spec={"dates": ["month", "year"]}
    )
    assert found == [{"1964-09"}, set()]


def test_a_longer_code_does_not_shift_the_masks_of_the_others():
    found, _ = column_matching(["02138", "02138-1234"], ["0213*"], ground=["02138", "02139"], spec={"mask": "right"})
    assert found == [{"0213*"}, set()]


def test_a_label_that_cannot_be_read_stands_for_who_has_none():
    known = ["divorced", "married", "single"]
    found, column = column_matching(known, ["been", "single"], ground=known)
    assert found == [{"been"}, {"been"}, {"single"}]
    assert column.unread == 1
    # Without the original it may be a value that nobody of these people has.
    assert column_matching(known, ["been", "single"])[0] == [set(), set(), {"single"}]
    for word in ("Any", "whatever"):
        found, column = column_matching(known, [word], ground=known)
        assert found == [{word}] * 3
        assert column.unread_cells == 0  # one word for everybody tells nothing


def test_a_number_that_nobody_has_is_no_label():
    found, column = column_matching(["1", "2"], ["1.5", "7-9"], ground=["1", "2"])
    assert found == [set(), set()]
    assert column.unread == 0


def test_a_null_is_a_value_or_a_wildcard():
    found, _ = column_matching(["a", None], ["a", None, "*"])
    assert found == [{"a", "*"}, {None, "*"}]
    found, _ = column_matching(["a", None], ["a", None], wildcard=True)
    assert found == [{"a", None}, {"a", None}]
    assert column_matching([None], ["a"])[0] == [set()]
