"""Rules by name: what each asks for, where it is written, and what Safe Harbor leaves of a value."""

import typing

import pyarrow as pa
import pytest

import shoal
from shoal.errors import InfeasibleError, PolicyError, UncoveredValueError
from shoal.hierarchies.builders import RESTRICTED, SafeHarbor
from shoal.policy import PresetName
from shoal.policy.presets import PRESETS


def policy(preset: str, columns=None, **fields) -> shoal.Policy:
    return shoal.Policy.of({"preset": preset, "columns": columns or {"a": {"role": "quasi"}}, **fields})


def classes_of(*sizes: int) -> pa.Table:
    return pa.table({"a": [f"{i}" for i, n in enumerate(sizes) for _ in range(n)]})


# What each rule asks, and the least class that it lets pass.
RULES = {
    "hipaa-safe-harbor": ([], 1),
    "cms-cell": (["11-anonymity"], 11),
    "ema-0070": (["re-identification risk at most 0.09"], 12),
    "ema-0070-convention": (["11-anonymity"], 11),
    "health-canada": (["re-identification risk at most 0.09"], 12),
    "health-canada-convention": (["11-anonymity"], 11),
    "cihi-public": (["re-identification risk at most 0.05"], 20),
    "wp216": (["2-anonymity"], 2),
    "lecture-low": (["3-anonymity"], 3),
    "lecture-medium": (["5-anonymity"], 5),
    "lecture-high": (["10-anonymity"], 10),
}


def test_every_preset_can_be_named_in_a_policy_and_is_tested_here():
    assert set(typing.get_args(PresetName)) == set(PRESETS) == set(RULES)


@pytest.mark.parametrize("preset", RULES)
def test_a_class_of_the_least_size_passes_and_one_below_does_not(preset):
    asked, least = RULES[preset]
    assert [model.summary for model in policy(preset).models] == asked
    table = classes_of(least, least + 5)
    found = shoal.check(table, policy(preset))
    of_classes, of_attacks = found.verdicts[: len(asked)], found.verdicts[len(asked) :]
    assert all(verdict.holds for verdict in of_classes)
    assert [verdict.missing for verdict in of_attacks] == ["needs the original"] * len(policy(preset).limits)
    assert found.outcome == ("unknown" if of_attacks else "holds")
    if least > 1:
        assert shoal.check(classes_of(least - 1, least + 5), policy(preset)).outcome == "fails"


@pytest.mark.parametrize("preset", RULES)
def test_a_release_keeps_the_rule_and_its_certificate_says_where_it_is_written(preset):
    _, least = RULES[preset]
    release = shoal.anonymize(classes_of(40, least, max(1, least - 1)), policy(preset))
    assert release.measured["k"] >= least
    found = release.certificate["preset"]
    assert found == {"name": preset, "citation": PRESETS[preset].citation, "note": PRESETS[preset].note}
    assert len(found["citation"]) > 20
    assert release.certificate["policy"]["preset"] == preset
    assert [verdict["asked"] for verdict in release.certificate["requirements"]] == [
        *RULES[preset][0],
        *(limit.summary for limit in policy(preset).limits),
    ]


def test_a_policy_without_a_preset_has_none_in_its_certificate():
    asked = shoal.Policy.of({"columns": {"a": {"role": "quasi"}}, "require": [{"model": "k-anonymity", "k": 2}]})
    assert shoal.anonymize(classes_of(2, 2), asked).certificate["preset"] is None


@pytest.mark.parametrize(("preset", "reads"), [("ema-0070", "strict"), ("health-canada", "strict")])
def test_the_strict_reading_of_nine_hundredths_needs_twelve_and_the_convention_eleven(preset, reads):
    of_eleven = classes_of(11, 11)
    assert not shoal.check(of_eleven, policy(preset)).holds
    assert shoal.check(of_eleven, policy(f"{preset}-convention")).holds
    assert reads in PRESETS[preset].note
    assert "12" in PRESETS[preset].note
    assert "convention" in PRESETS[f"{preset}-convention"].note
    assert "11" in PRESETS[f"{preset}-convention"].note
    assert shoal.anonymize(of_eleven, policy(preset)).measured["k"] == 22


@pytest.mark.parametrize(
    ("preset", "where"),
    [
        ("hipaa-safe-harbor", "45 CFR 164.514(b)(2)"),
        ("cms-cell", "CMS"),
        ("ema-0070", "EMA Policy 0070"),
        ("health-canada", "Health Canada"),
        ("cihi-public", "Canadian Institute for Health Information"),
        ("lecture-high", "k from 10 to 20"),
    ],
)
def test_a_citation_names_its_source(preset, where):
    assert where in PRESETS[preset].citation


def test_requirements_of_the_policy_come_on_top_of_those_of_the_preset():
    both = policy("lecture-low", require=[{"model": "k-anonymity", "k": 7}])
    assert [model.summary for model in both.models] == ["3-anonymity", "7-anonymity"]
    assert shoal.anonymize(classes_of(4, 4), both).measured["k"] == 8
    weaker = policy("lecture-high", require=[{"model": "k-anonymity", "k": 2}])
    assert shoal.anonymize(classes_of(9, 2), weaker).measured["k"] == 11


def test_a_rule_that_cannot_be_kept_is_told_by_what_it_asks():
    with pytest.raises(InfeasibleError, match=r"risk at most 0\.09"):
        shoal.anonymize(classes_of(5, 6), policy("ema-0070"))


def test_an_unknown_preset_is_refused_with_a_list_of_those_there_are():
    with pytest.raises(PolicyError) as error:
        policy("gdpr")
    assert "preset" in str(error.value)
    for name in PRESETS:
        assert f"'{name}'" in str(error.value)


@pytest.mark.parametrize("preset", RULES)
def test_a_policy_with_a_preset_survives_the_way_through_toml(preset):
    asked = policy(preset, release={"max_suppression": 0.1})
    read = shoal.Policy.parse(asked.to_toml())
    assert read == asked
    assert read.preset == preset
    assert read != policy(
        "lecture-low" if preset != "lecture-low" else "lecture-high", release={"max_suppression": 0.1}
    )
    assert shoal.Policy.of(asked.model_dump(mode="json", exclude_none=True)) == asked


# --- Safe Harbor ---------------------------------------------------------------------------------------------------

HARBOR = {
    "zip": {"role": "quasi", "hierarchy": {"safe_harbor": "zip"}},
    "birth": {"role": "quasi", "hierarchy": {"safe_harbor": "date"}},
    "age": {"role": "quasi", "hierarchy": {"safe_harbor": "age"}},
    "name": {"role": "identifier"},
}


def patients() -> pa.Table:
    return pa.table(
        {
            "zip": ["02138", "02139", "03601", "03602", "10200", "89301-1234", "021381111"],
            "birth": ["1964-04-12", "1964-09-13", "1931-01-01", "1930-12-31", "1970-02-28", "2000-02-29", "1999-12-31"],
            "age": ["0", "89", "90", "104", "54", "24", "25"],
            "name": ["Ada", "Bo", "Cy", "Di", "Ed", "Flo", "Gus"],
        }
    )


def test_safe_harbor_keeps_three_digits_the_year_and_no_age_above_89():
    release = shoal.anonymize(patients(), policy("hipaa-safe-harbor", HARBOR, release={"shuffle": False}))
    assert release.recoding.node == (0, 0, 0)
    assert release.table.to_pydict() == {
        "zip": ["021**", "021**", "000**", "000**", "000**", "000**", "021**"],
        "birth": ["1964", "1964", "1931", "1930", "1970", "2000", "1999"],
        "age": ["0", "89", ">=90", ">=90", "54", "24", "25"],
    }
    assert "publisher must judge" in release.certificate["preset"]["note"]


def test_the_areas_with_few_people_are_those_of_the_guidance():
    assert len(RESTRICTED) == 17
    assert sorted(RESTRICTED)[:4] == ["036", "059", "063", "102"]
    assert sorted(RESTRICTED)[-4:] == ["879", "884", "890", "893"]
    codes = [f"{area:03}{end}" for area in range(1000) for end in ("00", "99")]
    hierarchy = SafeHarbor(safe_harbor="zip").build("zip", codes)
    for leaf, code in zip(hierarchy.leaves, hierarchy.table[0], strict=True):
        shown = "000" if leaf[:3] in RESTRICTED else leaf[:3]
        assert hierarchy.label(0, int(code)) == shown + "**"


def test_no_level_of_safe_harbor_shows_more_than_the_rule_allows():
    ages = SafeHarbor(safe_harbor="age").build("age", [str(age) for age in range(121)])
    for labels in ages.labels:
        shown = [int(part) for label in labels for part in label.removeprefix(">=").split("-") if label != "*"]
        assert max(shown, default=0) <= 90
    assert len({int(code) for code in ages.table[0][[ages.leaves.index(str(age)) for age in range(90, 121)]]}) == 1
    dates = SafeHarbor(safe_harbor="date").build("birth", ["1964-04-12", "1964-09-13", "1999-12-31"])
    assert dates.labels[0] == ("1964", "1999")
    assert all("-" not in label or len(label) == 9 for labels in dates.labels for label in labels)


@pytest.mark.parametrize("kind", ["zip", "date", "age"])
def test_what_cannot_be_read_is_refused_or_hidden_but_never_shown(kind):
    rows = pa.table({"v": ["2138", "02a38", "n/a", "1964-13-45"]})
    column = {"role": "quasi", "hierarchy": {"safe_harbor": kind}}
    if kind == "age":
        rows = pa.table({"v": ["old", "n/a", "ninety-one"]})
    with pytest.raises(UncoveredValueError) as error:
        shoal.anonymize(rows, policy("hipaa-safe-harbor", {"v": column}))
    assert "'v'" in str(error.value)
    assert not any(text in str(error.value) for text in rows["v"].to_pylist())
    hidden = shoal.anonymize(rows, policy("hipaa-safe-harbor", {"v": {**column, "uncovered": "suppress"}}))
    assert set(hidden.table["v"].to_pylist()) == {"*"}


@pytest.mark.parametrize(
    ("hierarchy", "instead"),
    [({"mask": "right"}, "zip"), ({"mask": "left"}, "zip"), ({"dates": ["month", "year"]}, "date")],
)
def test_the_preset_refuses_hierarchies_that_show_more_than_the_rule_allows(hierarchy, instead):
    with pytest.raises(PolicyError) as error:
        policy("hipaa-safe-harbor", {"v": {"role": "quasi", "hierarchy": hierarchy}})
    assert "columns.v.hierarchy" in str(error.value)
    assert f'safe_harbor = "{instead}"' in str(error.value)
    shoal.Policy.of({"preset": "cms-cell", "columns": {"v": {"role": "quasi", "hierarchy": hierarchy}}})


def test_safe_harbor_hierarchies_go_with_other_requirements_and_survive_toml():
    asked = policy("hipaa-safe-harbor", HARBOR, require=[{"model": "k-anonymity", "k": 2}])
    assert shoal.Policy.parse(asked.to_toml()) == asked
    release = shoal.anonymize(patients(), asked)
    assert release.measured["k"] >= 2
    assert not {"02138", "1964-04-12", "104"} & {str(v) for column in release.table.columns for v in column.to_pylist()}


def test_nulls_stay_nulls_at_safe_harbor():
    rows = pa.table({"zip": ["02138", None], "birth": [None, "1964-04-12"], "age": [None, "95"], "name": ["x", "y"]})
    release = shoal.anonymize(rows, policy("hipaa-safe-harbor", HARBOR, release={"shuffle": False}))
    assert release.table.to_pydict() == {"zip": ["021**", None], "birth": [None, "1964"], "age": [None, ">=90"]}


def test_an_unknown_kind_of_safe_harbor_is_refused():
    with pytest.raises(PolicyError, match=r"columns\.v\.hierarchy.*safe_harbor"):
        policy("hipaa-safe-harbor", {"v": {"role": "quasi", "hierarchy": {"safe_harbor": "phone"}}})
