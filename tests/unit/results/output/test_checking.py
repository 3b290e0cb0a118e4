"""Tables of results: what fails, what is hidden, and what two tables give away together."""

import json
import stat
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli import app
from shoal.engines.opening import opened
from shoal.results import written
from shoal.results.output import checked, linear
from shoal.results.output.rules import OutputRules


def people(n: int = 3000, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "region": rng.choice(list("ABCD"), n, p=[0.5, 0.3, 0.197, 0.003]),
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(18, 90, n),
            "income": np.exp(rng.normal(10, 0.5, n)).round(),
            "person": np.arange(n) // 2,
        }
    )


def test_the_mean_income_of_a_ward_with_one_rich_person_is_not_published() -> None:
    ward = pa.table({"income": [30_000.0 + i for i in range(40)] + [50_000_000.0]})
    found = shoal.check_output(ward, value="income", statistics=["mean"])
    assert found.outcome == "fails"
    assert set(found.cells[0].failed_rules) == {"dominance", "p %"}
    with pytest.raises(shoal.InfeasibleError):
        _ = found.table


def test_mean_salaries_by_town_hide_the_town_of_three_and_another() -> None:
    rows = pa.table({"town": ["A"] * 40 + ["B"] * 30 + ["C"] * 3, "salary": [100.0 + i for i in range(73)]})
    found = shoal.check_output(rows, by=["town"], value="salary", statistics=["count", "mean"])
    hidden = {cell.labels[0]: cell for cell in found.cells if cell.hidden}
    assert set(hidden) == {"B", "C"}
    assert found.proved
    low, high = hidden["C"].ranges["count"]
    assert low == 1  # a group with a mean is not empty
    assert high == 32
    assert found.table.filter(pc.field("suppressed"))["mean"].null_count == 2


@pytest.mark.parametrize(
    ("largest", "total", "p", "fails"),
    [([100, 40, 5], 145, 10, True), ([100, 40, 10], 150, 10, False), ([100, 40, 9.9], 149.9, 10, True)],
)
def test_the_second_largest_contributor_is_the_intruder_of_the_p_rule(
    largest: list[float], total: float, p: float, fails: bool
) -> None:
    assert ("p %" in OutputRules(p=p, dominance=None).failing(largest, total)) == fails


def test_dominance_of_n_contributors() -> None:
    rules = OutputRules(dominance=(2, 85.0), p=None)
    assert rules.failing([60, 26, 14], 100) == {"dominance": pytest.approx(86 / 0.85 - 100)}
    assert rules.failing([60, 25, 15], 100) == {}


def test_persons_are_counted_not_records() -> None:
    rows = pa.table({"town": ["A"] * 60 + ["B"] * 60, "who": [str(i) for i in range(60)] + ["x", "y", "z"] * 20})
    assert shoal.check_output(rows, by=["town"]).holds
    found = shoal.check_output(rows, by=["town"], entity="who")
    assert {cell.labels[0]: cell.failed_rules for cell in found.cells if cell.failed_rules} == {"B": ("least count",)}


def test_a_person_in_several_groups_is_one_person_in_their_total() -> None:
    rows = pa.table({"town": ["A", "B"] * 12, "who": [str(i // 2) for i in range(24)], "x": [1.0] * 24})
    found = shoal.check_output(rows, by=["town"], entity="who", min_count=13, value="x", statistics=["sum"])
    assert all(
        "least count" in cell.failed_rules for cell in found.cells
    )  # 12 persons everywhere, also in the total of 24


def test_a_lone_contributor_does_not_learn_the_other_hidden_sum() -> None:
    """Two towns with one person each: with only these hidden, either subtracts their own income from the rest."""
    towns = ["A"] * 30 + ["B"] * 30 + ["C", "D"]
    rows = pa.table({"town": towns, "income": [100.0 + i for i in range(60)] + [5000.0, 4000.0]})
    found = shoal.check_output(rows, by=["town"], value="income", statistics=["sum"], dominance=None)
    assert {cell.labels[0] for cell in found.cells if cell.hidden} > {"C", "D"}


def test_everybody_in_one_group_of_a_sensitive_column_is_hidden() -> None:
    rows = pa.table(
        {"town": ["A"] * 20 + ["B"] * 40 + ["C"] * 40, "ill": ["yes"] * 20 + ["yes", "no"] * 40},
    )
    found = shoal.check_output(rows, by=["town", "ill"], sensitive=["ill"])
    assert [cell.labels for cell in found.cells if "full" in cell.failed_rules] == [("A", "yes")]
    full = next(cell for cell in found.cells if "full" in cell.failed_rules)
    assert full.ranges["count"][0] < 20
    assert shoal.check_output(rows, by=["town", "ill"], sensitive=[]).holds


def test_quantiles_need_persons_on_both_sides() -> None:
    rows = pa.table({"town": ["A"] * 30 + ["B"] * 60, "x": [float(i) for i in range(90)]})
    assert shoal.check_output(rows, by=["town"], value="x", statistics=["median"]).holds
    found = shoal.check_output(rows, by=["town"], value="x", statistics=["p80"])
    assert [cell.labels[0] for cell in found.cells if "quantile" in cell.failed_rules] == [
        "A"
    ]  # six above in A, twelve in B
    assert not shoal.check_output(rows, by=["town"], value="x", statistics=["p100"]).safe


def test_tables_that_differ_by_a_few_people_are_not_both_released(tmp_path: Path) -> None:
    rows = pa.table({"age": [20 + i % 45 for i in range(900)] + [65] * 2})
    ledger = tmp_path / "ledger.json"
    first = shoal.check_output(rows, where=["age >= 18", "age <= 64"], ledger=ledger)
    assert first.holds
    first.save(tmp_path / "first.csv")
    second = shoal.check_output(rows, where=["age >= 18", "age <= 65"], ledger=ledger)
    assert second.outcome == "fails"
    with pytest.raises(shoal.InfeasibleError):
        second.save(tmp_path / "second.csv")
    assert not (tmp_path / "second.csv").exists()
    apart = shoal.check_output(rows, where=["age >= 18", "age <= 50"], ledger=ledger)
    assert apart.holds  # many people are between


def test_overlapping_bands_are_a_difference_too(tmp_path: Path) -> None:
    rows = pa.table({"age": [20 + i % 60 for i in range(1200)] + [64] * 0})
    few = pa.table({"age": [age for age in rows["age"].to_pylist() if age != 64] + [64] * 4})
    ledger = tmp_path / "ledger.json"
    shoal.check_output(few, by=["age"], bands={"age": [40, 64]}, ledger=ledger).save(tmp_path / "a.csv")
    second = shoal.check_output(few, by=["age"], bands={"age": [40, 65]}, ledger=ledger)
    assert second.outcome == "fails"
    shown = {cell.labels[0] for cell in second.cells if not cell.hidden}
    assert "40 to < 65" not in shown
    assert ">= 65" not in shown


def test_data_without_one_record_are_not_released_again(tmp_path: Path) -> None:
    rows, ledger = people(), tmp_path / "ledger.json"
    shoal.check_output(rows, by=["sex"], ledger=ledger).save(tmp_path / "a.csv")
    found = shoal.check_output(rows.slice(1), by=["sex"], ledger=ledger)
    assert found.outcome == "fails"
    assert not found.safe
    grown = pa.concat_tables([rows, rows])
    assert shoal.check_output(grown, by=["sex"], ledger=ledger).outcome == "unknown"


def test_the_ledger_holds_what_was_published_and_nothing_else(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    rows = pa.table({"town": ["A"] * 40 + ["B"] * 31 + ["C"] * 7})
    shoal.check_output(rows, by=["town"], ledger=ledger).save(tmp_path / "a.csv")
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600
    (entry,) = json.loads(ledger.read_text())["releases"]
    assert entry["cells"] == [{"group": ["A"], "count": 40.0}, {"group": [0], "count": 78.0}]


def test_a_table_released_meanwhile_is_noticed(tmp_path: Path) -> None:
    rows, ledger = people(), tmp_path / "ledger.json"
    first = shoal.check_output(rows, by=["sex"], ledger=ledger)
    second = shoal.check_output(rows, by=["region"], ledger=ledger, min_count=3)
    first.save(tmp_path / "a.csv")
    with pytest.raises(shoal.OutputError):
        second.save(tmp_path / "b.csv")
    assert not (tmp_path / "b.csv").exists()


@pytest.mark.parametrize("text", ["", "{}", '{"format": "shoal output ledger 1"}', "[" * 200])
def test_a_damaged_ledger_is_no_empty_ledger(tmp_path: Path, text: str) -> None:
    ledger = tmp_path / "ledger.json"
    ledger.write_text(text)
    with pytest.raises(shoal.DataError):
        shoal.check_output(people(), by=["sex"], ledger=ledger)


def test_nothing_is_released_if_the_solver_gives_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def gives_up(*given: object, **options: object) -> None:
        raise shoal.CannotTellError("the solver reached its limit")

    monkeypatch.setattr(linear.LinearIntruder, "_solved", gives_up)
    rows = pa.table({"a": ["x"] * 20 + ["y"] * 23, "b": (["u"] * 17 + ["v"] * 3) + (["u"] * 20 + ["v"] * 3)})
    found = shoal.check_output(rows, by=["a", "b"])
    assert not found.safe
    assert found.missing
    with pytest.raises(shoal.CannotTellError):
        found.save(tmp_path / "a.csv")


def test_hidden_figures_appear_nowhere() -> None:
    rows = pa.table({"town": ["A"] * 40 + ["B"] * 31 + ["C"] * 7, "x": [1.0, 2.0] * 35 + [3.0] + [987.125] * 7})
    found = shoal.check_output(rows, by=["town"], value="x", statistics=["count", "sum"], dominance=None, p=None)
    assert "C" in {cell.labels[0] for cell in found.cells if cell.hidden}
    told = repr(found) + json.dumps(found.as_dict()) + str(found.table.to_pylist())
    assert str(7 * 987.125) not in told


def test_nested_columns_have_totals_of_their_own() -> None:
    rows = pa.table({"region": ["N"] * 60 + ["S"] * 60, "town": ["a"] * 30 + ["b"] * 30 + ["c"] * 30 + ["d"] * 30})
    found = shoal.check_output(rows, by=["region > town"])
    assert len(found.cells) == 7
    assert found.holds


def test_the_engines_agree(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    rows = people()
    duckdb.from_arrow(rows).write_parquet(str(path))
    asked = {"by": ["region", "sex"], "value": "income", "statistics": ["count", "mean", "median"]}
    local = shoal.check_output(rows, **asked)
    other = shoal.check_output(opened(str(path), engine="duckdb"), **asked)
    assert local.outcome == other.outcome == "fails"
    ours, theirs = (sorted(found.table.to_pylist(), key=str) for found in (local, other))
    assert [list(row.values())[:3] for row in ours] == [list(row.values())[:3] for row in theirs]
    assert [row["suppressed"] for row in ours] == [row["suppressed"] for row in theirs]


def test_the_command_line_writes_only_what_is_safe(tmp_path: Path) -> None:
    data, out = tmp_path / "rows.csv", tmp_path / "safe.csv"
    data.write_text("town\n" + "A\n" * 40 + "B\n" * 31 + "C\n" * 7)
    run = CliRunner().invoke
    assert run(app, ["output", str(data), "--by", "town"]).exit_code == 1
    assert run(app, ["output", str(data), "--by", "town", "--min-count", "5"]).exit_code == 0
    written = run(app, ["output", str(data), "--by", "town", "-o", str(out), "--ledger", str(tmp_path / "l.json")])
    assert written.exit_code == 0, written.output
    assert out.read_text().splitlines()[1:] == ["A,40,false", "B,,true", "C,,true", "Total,78,false"]
    told = json.loads(run(app, ["output", str(data), "--by", "town", "--json"]).stdout)
    assert told["n_hidden"] == 2
    assert run(app, ["output", str(data), "--by", "nowhere"]).exit_code == 2
    assert run(app, ["output", str(data), "--by", "town", "-o", str(data), "--force"]).exit_code == 2
    assert "town" in data.read_text()


@pytest.mark.parametrize(
    "asked",
    [
        {"by": ["sex", "sex"]},
        {"by": ["sex"], "statistics": ["mean"]},
        {"by": ["sex"], "statistics": ["mode"]},
        {"by": ["sex"], "where": ["nonsense"]},
        {"by": ["sex"], "bands": {"age": [1]}},
        {"by": ["age"], "bands": {"age": [3, 1]}},
        {"by": ["sex"], "min_count": 0},
        {"by": ["sex"], "time_limit": float("nan")},
        {"by": ["sex"], "value": "endless", "statistics": ["sum"]},
        {"by": ["sex"], "sensitive": ["age"]},
        {"by": ["absent"]},
        {"by": ["sex"], "where": ["age > 200"]},
    ],
)
def test_what_makes_no_sense_is_refused(asked: dict[str, object]) -> None:
    rows = people()
    rows = rows.append_column("endless", pa.array([float("inf"), *range(len(rows) - 1)], pa.float64()))
    with pytest.raises((shoal.PolicyError, shoal.DataError)):
        shoal.check_output(rows, **asked)  # type: ignore[arg-type]


def test_a_person_with_many_records_is_protected_by_their_number_of_records() -> None:
    """One person has 50 of the 52 records of two hidden towns: with these two alone, 50 could be told to within 2."""
    towns = ["A"] * 40 + ["B"] * 30 + ["C"] * 50 + ["D"] * 2
    who = [f"a{i}" for i in range(40)] + [f"b{i}" for i in range(30)] + ["often"] * 50 + ["d1", "d2"]
    found = shoal.check_output(pa.table({"town": towns, "who": who}), by=["town"], entity="who")
    hidden = {cell.labels[0]: cell for cell in found.cells if cell.hidden}
    assert {"C", "D"} < set(hidden)
    low, high = hidden["C"].ranges["count"]
    assert low <= 45
    assert high >= 55


def test_a_count_of_records_that_are_mostly_one_persons_is_hidden() -> None:
    towns = ["A"] * 40 + ["B"] * 212
    who = [f"a{i}" for i in range(40)] + ["often"] * 200 + [f"b{i}" for i in range(12)]
    found = shoal.check_output(pa.table({"town": towns, "who": who}), by=["town"], entity="who")
    assert next(cell.failed_rules for cell in found.cells if cell.labels[0] == "B") == ("dominance", "p %")


@pytest.mark.parametrize(
    ("asked", "changed"),
    [
        ({"value": "income", "statistics": ["sum"]}, "sum"),
        ({"value": "income", "statistics": ["mean"]}, "mean"),
        ({"value": "income", "statistics": ["median"]}, "median"),
    ],
)
def test_a_changed_value_is_noticed_where_all_counts_are_as_before(
    tmp_path: Path, asked: dict[str, object], changed: str
) -> None:
    rows, ledger = people(), tmp_path / "ledger.json"
    shoal.check_output(rows, by=["sex"], ledger=ledger, **asked).save(tmp_path / "a.csv")  # type: ignore[arg-type]
    assert shoal.check_output(rows, by=["sex"], ledger=ledger).safe
    incomes = np.asarray(rows["income"]) + (1 if changed == "median" else 0)
    incomes[0] += 1
    other = rows.set_column(rows.column_names.index("income"), "income", pa.array(incomes))
    found = shoal.check_output(other, by=["sex"], ledger=ledger)  # about counts, which are as before
    assert found.outcome == "unknown"
    assert not found.safe
    assert found.reason.endswith(changed)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet"])
def test_a_file_with_another_figure_is_not_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    rows = pa.table({"=town": ["A"] * 40 + [None] * 31 + ["=C"] * 7 + ["1"] * 30, "x": [0.1 * i for i in range(108)]})
    found = shoal.check_output(rows, by=["=town"], value="x", statistics=["count", "mean", "p50"])
    found.save(tmp_path / name)
    assert (tmp_path / name).exists()
    whole = written.write_table_file

    def with_a_hidden_figure(table: pa.Table, path: Path, **options: object) -> str:
        told = table.set_column(1, "count", pa.array([7 if n is None else n for n in table["count"].to_pylist()]))
        return whole(told, path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(written, "write_table_file", with_a_hidden_figure)
    with pytest.raises(shoal.VerificationError):
        found.save(tmp_path / f"other_{name}")
    assert not (tmp_path / f"other_{name}").exists()


def test_ranges_are_shown_rounded_outwards() -> None:
    rng = np.random.default_rng(3)
    for low, width in zip(rng.normal(0, 1000, 200), 10 ** rng.uniform(-3, 6, 200), strict=True):
        start, stop = (float(part.replace(",", "")) for part in checked._ends(low, low + width).split(" to "))
        slight = 1e-5 * width
        assert low - width / 5 < start <= low + slight
        assert low + width - slight <= stop < low + width * 1.2


@pytest.mark.parametrize("values", [(0, 1), (1, 2), (1, 100), (-1, 1), (1.5, 2.5)])
def test_the_mean_of_two_values_is_a_count_whatever_they_are(values: tuple[float, float]) -> None:
    low, high = values
    rows = pa.table({"town": ["A", "B"] * 50, "v": [float(high if i % 3 else low) for i in range(100)]})
    for statistic in ("sum", "mean"):
        with pytest.raises(shoal.PolicyError, match="only two values"):
            shoal.check_output(rows, by=["town"], value="v", statistics=[statistic])
    coded = pa.table({"town": ["A", "B"] * 50, "v": [9.0] * 3 + rows["v"].to_pylist()[3:]})  # 9 for "unknown"
    with pytest.raises(shoal.PolicyError, match="only two values"):
        shoal.check_output(coded, by=["town"], value="v", statistics=["mean"])
    several = pa.table({"town": ["A", "B"] * 50, "v": [float(i % 3) for i in range(100)]})
    shoal.check_output(several, by=["town"], value="v", statistics=["mean"])  # three values are not refused
