"""p-sensitive k-anonymity (Truta, Vinay 2006)."""

import pandas as pd
import pytest

import shoal


def patients():
    """Two classes of three: the first has one illness and two incomes, the second two and three."""
    rows = [
        ("50", "43102", "colon cancer", "50,000"),
        ("50", "43102", "colon cancer", "50,000"),
        ("50", "43102", "colon cancer", "60,000"),
        ("30", "43103", "breast cancer", "30,000"),
        ("30", "43103", "HIV", "40,000"),
        ("30", "43103", "HIV", "50,000"),
    ]
    return pd.DataFrame(rows, columns=["age", "zip", "illness", "income"])


def asked(p, k, **column):
    roles = {"age": "quasi", "zip": "quasi", "illness": "sensitive", "income": "sensitive"}
    columns = {name: {"role": role} for name, role in roles.items()}
    return shoal.Policy.of({"columns": columns, "require": [{"model": "p-sensitive", "p": p, "k": k, **column}]})


def test_a_three_anonymous_table_with_one_illness_in_a_class_is_not_two_sensitive():
    verdicts = shoal.check(patients(), asked(2, 3))
    assert not verdicts.holds
    assert (verdicts.verdicts[0].worst, verdicts.verdicts[0].classes, verdicts.verdicts[0].records) == (1, 1, 3)


def test_every_sensitive_column_counts_unless_one_is_named():
    assert shoal.check(patients(), asked(2, 3, column="income")).holds
    assert not shoal.check(patients(), asked(2, 3, column="illness")).holds


def test_one_more_illness_makes_the_table_two_sensitive():
    frame = patients()
    frame.loc[0, "illness"] = "flu"
    assert shoal.check(frame, asked(2, 3)).holds
    assert not shoal.check(frame, asked(3, 3)).holds


def test_enough_values_in_too_small_a_class_do_not_pass():
    frame = patients()
    frame.loc[0, "illness"] = "flu"
    assert not shoal.check(frame, asked(2, 4)).holds


def test_more_values_than_records_cannot_be_asked():
    with pytest.raises(shoal.ShoalError):
        asked(4, 3)


def test_anonymize_merges_the_classes_to_make_them_two_sensitive():
    release = shoal.anonymize(patients(), asked(2, 3))
    assert release.measured.columns["illness"]["l"] >= 2
    assert release.measured.columns["income"]["l"] >= 2
    assert release.measured["k"] == 6
