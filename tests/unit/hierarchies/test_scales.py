"""If these fail, values on an ordered scale lose their order, or neighbours on it are joined wrongly."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.hierarchies.builders import Flat, build
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.scales import SCALES, WORDS, Ordered, _words, may_hold, places
from shoal.inspection.hierarchy_proposal import propose
from shoal.notation.labels import read_set


def built(scale: object, values: list[str]) -> Hierarchy:
    spec = Ordered.model_validate({"ordered": scale})
    return build("x", spec, values, nulls=False, uncovered="error", folder=Path())


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (["low", "medium", "high"], "amount"),
        (["niedrig", "mittel", "hoch"], "amount"),
        (["Faible", "Moyen", "Élevé"], "amount"),
        (["basso", "medio", "alto"], "amount"),
        (["bajo", "medio", "alto"], "amount"),
        (["baixo", "médio", "alto"], "amount"),
        (["never", "rarely", "sometimes", "often", "always"], "frequency"),
        (["nie", "selten", "manchmal", "oft", "immer"], "frequency"),
        (["jamais", "parfois", "souvent", "toujours"], "frequency"),
        (["mai", "a volte", "spesso", "sempre"], "frequency"),
        (["nunca", "a veces", "a menudo", "siempre"], "frequency"),
        (["nunca", "às vezes", "muitas vezes", "sempre"], "frequency"),
        (["strongly_disagree", "disagree", "neutral", "agree", "strongly_agree"], "agreement"),
        (["Stimme nicht zu", "Teils/teils", "Stimme zu", "Stimme voll und ganz zu"], "agreement"),
        (["Pas du tout d'accord", "Pas d'accord", "D'accord", "Tout à fait d'accord"], "agreement"),
        (["In disaccordo", "Neutrale", "D'accordo"], "agreement"),
        (["En desacuerdo", "Indeciso", "De acuerdo"], "agreement"),
        (["Discordo totalmente", "Discordo", "Concordo", "Concordo totalmente"], "agreement"),
        (["poor", "fair", "good", "very good", "excellent"], "quality"),
        (["S", "M", "L", "XL"], "size"),
        (["mild", "moderate", "severe"], "severity"),
        (["primary", "secondary", "tertiary"], "education"),
        (["A", "A-", "B+", "B", "C"], "marks"),
        (["9th", "10th", "11th", "12th"], "numbered"),
        (["Stage I", "Stage II", "Stage III", "Stage IV"], "numbered"),
        (["Klasse 5", "Klasse 6", "Klasse 10"], "numbered"),
        (["under 18", "18-24", "25-64", "65+"], "ranges"),
        (["Under $5,000", "$5,000 to $9,999", "$10,000 or more"], "ranges"),
    ],
)
def test_values_on_a_scale_keep_its_order(values, scale):
    given = sorted(values)
    found = propose("x", given, np.ones(len(given), np.int64))
    assert found.hierarchy == Ordered(ordered=scale)
    assert found.cells == "range"
    if scale == "marks":  # the best comes first
        values = ["A", "A-", "B+", "B", "C"]
    assert list(built(scale, given).leaves) == values


@pytest.mark.parametrize(
    "values",
    [
        ["low", "medium", "blue"],
        ["town 1", "town 2", "town 3"],
        ["01", "02", "03"],
        ["male", "female", "other"],
        ["0-10", "5-20", "20-30"],
        ["A", "B", "O", "AB"],
        ["A", "B", "C", "D"],  # departments, say
        ["I", "II", "III"],  # studies
    ],
)
def test_what_does_not_fit_in_all_values_has_no_order(values):
    assert propose("x", values, np.ones(len(values), np.int64)).hierarchy == Flat()


@pytest.mark.parametrize(("column", "values"), [("grade", ["A", "B", "C"]), ("tumour_stage", ["I", "II", "III"])])
def test_bare_letters_are_an_order_where_the_name_says_so(column, values):
    assert isinstance(propose(column, values, np.ones(3, np.int64)).hierarchy, Ordered)


def test_neighbours_are_joined_level_by_level():
    likert = ["strongly disagree", "disagree", "neutral", "agree", "strongly agree"]
    assert built("agreement", likert).labels == (
        tuple(likert), ("{strongly disagree, disagree}", "neutral", "{agree, strongly agree}"), ("*",),
    )  # fmt: skip
    assert built(["d", "c", "b", "a", "e"], ["a", "b"]).labels == (
        ("d", "c", "b", "a", "e"), ("{d, c}", "{b, a}", "e"), ("{d, c, b, a}", "e"), ("*",),
    )  # fmt: skip


def test_a_value_off_the_scale_is_refused_or_goes_to_the_top():
    with pytest.raises(shoal.ShoalError, match="1 of 3 distinct values are missing from"):
        built("amount", ["low", "high", "blue"])
    spec = Ordered.model_validate({"ordered": "amount"})
    hierarchy = build("x", spec, ["low", "high", "blue"], nulls=True, uncovered="suppress", folder=Path())
    assert hierarchy.label(0, hierarchy.table[0, hierarchy.encode(["blue"])[0]]) == "*"


@pytest.mark.parametrize("wrong", ["ladder", [], ["a", "a"], 5])
def test_mistakes_are_told(wrong):
    with pytest.raises(shoal.ShoalError, match=r"columns\.x\.hierarchy: ordered"):
        shoal.Policy.of({
            "columns": {"x": {"role": "quasi", "hierarchy": {"ordered": wrong}}},
            "require": [{"model": "k-anonymity", "k": 2}],
        })  # fmt: skip


@pytest.mark.parametrize("scale", sorted(WORDS))
def test_every_word_stands_once_and_steps_rise_with_their_groups(scale):
    found = _words(scale)
    ranked = sorted(set(found.values()))
    assert [place.rank for place in ranked] == list(range(len(ranked)))
    assert [place.group for place in ranked] == sorted(place.group for place in ranked)
    assert ranked[-1].group == 2
    assert len(found) >= 40  # six languages


@given(st.sampled_from(sorted(WORDS)), st.data())
def test_any_words_of_a_scale_are_in_its_order(scale, data):
    values = sorted(data.draw(st.sets(st.sampled_from(sorted(_words(scale))), min_size=1)))
    hierarchy = built(scale, values)
    ranks = [places(scale, [leaf])[leaf].rank for leaf in hierarchy.leaves if leaf is not None]
    assert ranks == sorted(ranks)
    for labels, codes in zip(hierarchy.labels[:-1], hierarchy.table[:-1], strict=True):
        assert (np.diff(codes) >= 0).all()  # a label stands for neighbours
        for code, label in enumerate(labels):
            under = [hierarchy.leaves[leaf] for leaf in np.flatnonzero(codes == code)]
            assert list(read_set(label or "") or [label]) == under


@given(st.sampled_from(SCALES), st.lists(st.text(max_size=6), max_size=12, unique=True))
def test_no_text_is_too_strange(scale, values):
    assert set(places(scale, values)) <= set(values)


@pytest.mark.parametrize("algorithm", ["local", "mondrian", "cover", "k_optimize", "optimal", "genetic", "mdav"])
def test_a_release_shows_neighbours_only(algorithm):
    draw = np.random.default_rng(7)
    words = ["never", "rarely", "sometimes", "often", "always"]
    frame = pd.DataFrame({"how often": draw.choice(words, 60), "age": draw.integers(20, 60, 60).astype(str)})
    policy = shoal.Policy.of({
        "columns": {
            "how often": {"role": "quasi", "hierarchy": {"ordered": "frequency"}, "cells": "range"},
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}, "cells": "range"},
        },
        "require": [{"model": "k-anonymity", "k": 4}],
        "release": {"algorithm": algorithm},
    })  # fmt: skip
    release = shoal.anonymize(frame, policy)
    assert release.verdicts.holds
    assert shoal.check(release.table, policy).holds
    for text in release.table["how often"].unique():
        members = read_set(text) or ((text,) if text != "*" else tuple(words))
        first = words.index(members[0])
        assert list(members) == words[first : first + len(members)], text


@pytest.mark.parametrize(
    ("scale", "values"),
    [
        ("agreement", ["agree", "disagree", "neutral"]),
        ("marks", ["A", "B+", "C-"]),
        ("numbered", ["grade 1", "grade 2", "grade 3"]),
        ("ranges", ["0-10", "10-20", *map(str, range(20, 60))]),
    ],
)
def test_a_few_values_never_rule_out_the_scale_that_all_of_them_are_on(scale: str, values: list[str]) -> None:
    assert len(places(scale, values)) == len(values)
    assert all(may_hold(scale, some) for some in (values[:1], values[1:], values[-2:], values))
    assert not may_hold(scale, [*values, "person 1200"])
