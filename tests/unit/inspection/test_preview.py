"""The hierarchy of a column, looked at, edited and saved."""

import json
from pathlib import Path

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.errors import HierarchyError, PolicyError, UncoveredValueError
from shoal.hierarchies.builders import File, build
from shoal.report.svg import Block

AGES = pd.DataFrame(
    {"age": ["3", "17", "18", "40", "40", "70", None], "dx": ["E11.9", "E10.1", "I10", "I10", "J45", "C50", "C50"]}
)


def test_every_level_counts_its_records():
    found = shoal.hierarchy(AGES, "age", boundaries=[18, 65])
    assert [(level.labels, level.records) for level in found.levels] == [
        (("3", "17", "18", "40", "70"), (1, 1, 1, 2, 1)),
        (("<18", "18-64", ">=65"), (2, 3, 1)),
        (("*",), (6,)),
    ]
    assert [level.smallest for level in found.levels] == [1, 1, 6]
    assert (found.records, found.missing) == (6, 1)
    assert found.policy_line() == 'age = { role = "quasi", hierarchy = { boundaries = [[18, 65]] } }'
    assert "40" not in repr(found)


@pytest.mark.parametrize(
    ("how", "level_1"),
    [
        ({"steps": [20, 40]}, ("0-19", "40-59", "60-79")),
        ({"given": {"intervals": [50]}}, ("0-49", "50-99")),
        ({"kind": "flat"}, ("*",)),
    ],
)
def test_it_is_edited_by_what_is_asked(how, level_1):
    assert shoal.hierarchy(AGES, "age", **how).levels[1].labels == level_1


def test_without_more_it_is_the_proposal():
    found = shoal.hierarchy(AGES, "dx")
    assert found.fields == {"codes": "icd-10"}
    assert "ICD-10" in found.told


def test_a_policy_has_its_own(tmp_path):
    policy = {"columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [30]}}, "dx": {"role": "sensitive"}},
              "require": [{"model": "k-anonymity", "k": 2}]}  # fmt: skip
    assert shoal.hierarchy(AGES, "age", policy=policy).levels[1].labels == ("0-29", "30-59", "60-89")


def test_what_cannot_be_is_told_without_values():
    with pytest.raises(PolicyError, match="no column 'pay'"):
        shoal.hierarchy(AGES, "pay")
    with pytest.raises(PolicyError, match="specified in 2 ways"):
        shoal.hierarchy(AGES, "age", steps=[5], kind="mask")
    with pytest.raises(PolicyError, match="unknown kind"):
        shoal.hierarchy(AGES, "age", kind="ladder")
    with pytest.raises(PolicyError, match="whole multiple") as caught:
        shoal.hierarchy(AGES, "age", steps=[5, 7])
    assert "age" in str(caught.value)
    with pytest.raises(UncoveredValueError, match="5 of 5 distinct values"):
        shoal.hierarchy(AGES, "dx", kind="frequency")


def test_a_saved_hierarchy_is_what_a_policy_can_name(tmp_path):
    found = shoal.hierarchy(AGES, "age", boundaries=[18, 65])
    found.save(tmp_path / "age.csv")
    assert (tmp_path / "age.csv").read_text().splitlines()[0] == "3;<18;*"
    again = shoal.hierarchy(AGES, "age", given=tmp_path / "age.csv")
    assert [level.labels for level in again.levels] == [level.labels for level in found.levels]
    asked = "require = [{ model = 'k-anonymity', k = 1 }]\n"
    columns = f"[columns]\n{found.policy_line('age.csv')}\ndx = {{ role = 'plain' }}\n"
    (tmp_path / "policy.toml").write_text(asked + columns)
    release = shoal.anonymize(AGES, tmp_path / "policy.toml")
    assert release.verdicts.holds
    with pytest.raises(shoal.ShoalError):
        found.save(tmp_path / "age.csv")  # which is there already
    found.save(tmp_path / "age.csv", force=True)


def test_top_coding_takes_a_level_of_its_own_in_a_file(tmp_path):
    found = shoal.hierarchy(AGES, "age", given={"intervals": [20], "top": 60})
    found.save(tmp_path / "age.csv")
    assert "min_level = 1" in found.policy_line("age.csv")
    again = shoal.hierarchy(AGES, "age", given=tmp_path / "age.csv")
    assert again.levels[1].labels == found.levels[0].labels


def test_a_hierarchy_with_two_parents_or_two_tops_is_refused(tmp_path):
    for text, law in (("3;a;x\n17;a;y\n", "C1"), ("3;a\n17;b\n", "C2")):
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises(HierarchyError, match=law):
            shoal.hierarchy(AGES, "age", given=tmp_path / "bad.csv")


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), min_size=1, max_size=6),
        min_size=1,
        max_size=20,
    )
)
def test_any_column_is_counted_and_reads_back(tmp_path_factory, values):
    frame = pd.DataFrame({"x": values}, dtype="str")
    try:
        found = shoal.hierarchy(frame, "x", kind="flat")
    except shoal.ShoalError:
        return
    for level in found.levels:
        assert sum(level.records) == found.records  # every level holds everybody
    target = tmp_path_factory.mktemp("saved") / "x.csv"
    try:
        found.save(target)
    except shoal.ShoalError:
        return  # refused, as it would not read back
    again = build("x", File(path=target.name), [], nulls=False, uncovered="error", folder=Path(target.parent))
    assert again.leaves == found.hierarchy.leaves
    assert again.labels == found.hierarchy.labels


def test_an_engine_counts_the_same():
    draw = np.random.default_rng(2)
    frame = pd.DataFrame({"age": draw.integers(0, 90, 500)})
    here, there = shoal.hierarchy(frame, "age"), shoal.hierarchy(ibis.memtable(pa.Table.from_pandas(frame)), "age")
    assert here.as_dict() == there.as_dict()


def test_on_the_command_line(tmp_path):
    AGES.to_csv(tmp_path / "ages.csv", index=False)
    data = str(tmp_path / "ages.csv")
    run = CliRunner().invoke
    shown = run(app, ["hierarchy", data, "age", "--boundaries", "18,65"])
    assert shown.exit_code == 0
    assert "<18 (2), 18-64 (3), >=65 (1)" in shown.output
    saved, drawn = tmp_path / "age.csv", tmp_path / "age.svg"
    said = run(app, ["hierarchy", data, "age", "--steps", "20,40", "--save", str(saved), "--chart", str(drawn)])
    assert 'hierarchy = "age.csv"' in said.output
    assert saved.read_text().startswith("3;0-19;0-39;*")
    assert drawn.read_text().startswith("<svg")
    found = json.loads(run(app, ["hierarchy", data, "age", "--file", str(saved), "--json"]).stdout)
    assert found["levels"][1]["records"] == [["0-19", 3], ["40-59", 2], ["60-79", 1]]
    assert run(app, ["hierarchy", data, "age", "--steps", "a,b"]).exit_code == 2
    assert run(app, ["hierarchy", data, "pay"]).exit_code == 2
    assert run(app, ["hierarchy", data, "age", "--save", str(saved)]).exit_code == 2  # there already


def test_the_chart_has_a_box_for_every_label():
    found = shoal.hierarchy(AGES, "age", boundaries=[18, 65])
    boxes = [mark for mark in found.chart().plot.marks if isinstance(mark, Block)]
    row = len(found.levels) - 2  # of level 1, with the top above
    assert sum(box.right - box.left for box in boxes if box.low == row) == found.records
    assert [box.name for box in boxes if box.low == row] == ["<18: 2 records", "18-64: 3 records", ">=65: 1 record"]
    assert len(boxes) == sum(len(level.labels) for level in found.levels)
