"""What an analyst reads in a released cell."""

import pyarrow as pa
import pytest

import shoal
from shoal.errors import PolicyError
from shoal.utility.reading import Pair


def policy(column, **release):
    return shoal.Policy.of({
        "columns": {"q": {"role": "quasi", **column}, "note": {"role": "plain"}},
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": release,
    })  # fmt: skip


def meaning(column, original, text, **release):
    """The leaves that a released text may stand for, with their shares, and whether it could be read."""
    tables = [pa.table({"q": pa.array(values, pa.string())}) for values in (original, [text])]
    (read,) = Pair.from_tables(*tables, policy(column, **release), ["q"]).columns
    row = read.masses[[int(read.released[0])]].toarray()[0]
    shares = {leaf: share for leaf, share in zip(read.hierarchy.leaves, row, strict=True) if share}
    assert sum(shares.values()) == pytest.approx(1)
    assert len(set(shares.values())) == 1
    return set(shares), read.unknown == 0


NUMBERS = {"hierarchy": {"intervals": [5, 10]}}
AGES = ["20", "22", "27", "31", "40"]


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        ("22", {"22"}),
        ("20-24", {"20", "22"}),
        ("20-29", {"20", "22", "27"}),
        ("21-33", {"22", "27", "31"}),
        ("[22, 31)", {"22", "27"}),
        (">=27", {"27", "31", "40"}),
        ("{20, 40}", {"20", "40"}),
        ("*", set(AGES)),
        ("23.5", {"22"}),
        ("35.9", {"40"}),
    ],
)
def test_numbers(text, leaves):
    assert meaning(NUMBERS, AGES, text) == (leaves, True)


def test_a_text_that_means_nothing_stands_for_everything_and_is_counted():
    assert meaning(NUMBERS, AGES, "around thirty") == (set(AGES), False)


@pytest.mark.parametrize(("text", "leaves"), [("351**", {"35137", "35138"}), ("{35137, 40000}", {"35137", "40000"})])
def test_masks_and_sets(text, leaves):
    assert meaning({"hierarchy": {"mask": "right"}}, ["35137", "35138", "40000"], text) == (leaves, True)


def test_labels_of_a_tree():
    tree = {"hierarchy": {"tree": {"any": {"ill": ["flu", "gout"], "well": ["fit"]}}}}
    assert meaning(tree, ["flu", "fit"], "ill") == ({"flu", "gout"}, True)
    assert meaning(tree, ["flu", "fit"], "any") == ({"flu", "gout", "fit"}, True)


def test_days():
    dates = {"hierarchy": {"dates": ["month", "year"]}}
    days = ["2001-02-03", "2001-02-20", "2001-03-01"]
    assert meaning(dates, days, "2001-02") == (set(days[:2]), True)
    assert meaning(dates, days, "2001-02-10/2001-03-05") == (set(days[1:]), True)


def test_a_null_is_a_null_or_anything():
    assert meaning(NUMBERS, [*AGES, None], None) == ({None}, True)
    assert meaning(NUMBERS, [*AGES, None], None, nulls="wildcard") == ({*AGES, None}, True)


@pytest.mark.parametrize(
    ("text", "middle"), [("22", 22), ("20-29", 24.5), (">=31", 35.5), ("*", 30), ("{20, 22}", 21), ("33.25", 33.25)]
)
def test_the_middle_of_what_a_text_stands_for(text, middle):
    tables = [pa.table({"q": values}) for values in (AGES, [text])]
    (read,) = Pair.from_tables(*tables, policy(NUMBERS), ["q"]).columns
    assert read.midpoints[read.released].tolist() == [middle]


def test_a_column_with_a_null_is_not_one_of_numbers():
    tables = [pa.table({"q": values}) for values in ([*AGES, None], AGES)]
    (read,) = Pair.from_tables(*tables, policy(NUMBERS), ["q"]).columns
    assert read.numbers is None


def test_columns_that_are_not_there_or_play_no_role_are_named():
    table = pa.table({"q": AGES, "note": AGES})
    with pytest.raises(PolicyError, match="the release has no column 'q'"):
        Pair.from_tables(table, table.drop_columns("q"), policy(NUMBERS))
    with pytest.raises(PolicyError, match="'note': neither a quasi-identifier nor a sensitive column"):
        Pair.from_tables(table, table, policy(NUMBERS), ["note"])
