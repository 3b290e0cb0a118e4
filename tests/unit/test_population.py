"""A population beside the policy: k-map, δ-presence and population uniqueness, from files to files."""

import csv
import json
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.errors import DataError, InfeasibleError, PolicyError, UncoveredValueError

SECRET = "Wilhelmina-Secret"

COLUMNS = """
[columns]
name = { role = "identifier" }
age  = { role = "quasi", hierarchy = { intervals = [10, 20] } }
zip  = { role = "quasi", hierarchy = { mask = "right" } }
"""


class Place:
    """A folder with a table, the population that it is drawn from, and a policy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rng = random.Random(5)
        self.people = [(str(rng.randint(20, 59)), f"{rng.randint(0, 3)}{rng.randint(0, 9)}") for _ in range(300)]
        self.sample = self.people[:80]
        self.write("people.csv", "age,zip", self.people)
        self.write("data.csv", "name,age,zip", [(f"{SECRET}{i}", *row) for i, row in enumerate(self.sample)])

    def write(self, name: str, header: str, rows) -> Path:
        path = self.folder / name
        path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
        return path

    def policy(self, require: str, release: str = "") -> shoal.Policy:
        text = f"{COLUMNS}\n[[require]]\n{require}\n[release]\n{release}\n"
        (self.folder / "policy.toml").write_text(text, encoding="utf-8")
        return shoal.Policy.load(self.folder / "policy.toml")

    @property
    def data(self) -> Path:
        return self.folder / "data.csv"

    def living(self, levels: dict[str, int]) -> Counter[tuple[str, str]]:
        """How many people have each released tuple, by the definition."""
        return Counter(self.generalized(row, levels) for row in self.people)

    @staticmethod
    def generalized(row: tuple[str, str], levels: dict[str, int]) -> tuple[str, str]:
        age, area = row
        width = (1, 10, 20)[levels["age"]] if levels["age"] < 3 else 0
        low = int(age) // width * width if width else 0
        shown = age if width == 1 else f"{low}-{low + width - 1}" if width else "*"
        return shown, area[: 2 - levels["zip"]] + "*" * levels["zip"]


@pytest.fixture
def place(tmp_path) -> Place:
    return Place(tmp_path)


def rows_of(table: pa.Table) -> list[tuple[str, str]]:
    return list(zip(table["age"].to_pylist(), table["zip"].to_pylist(), strict=True))


MODELS = {
    "k-map": 'model = "k-map"\nk = 6\npopulation = "people.csv"',
    "presence": 'model = "delta-presence"\nhigh = 0.5\npopulation = "people.csv"',
    "presence from below": 'model = "delta-presence"\nlow = 0.1\nhigh = 0.6\npopulation = "people.csv"',
    "uniqueness": 'model = "population-uniqueness"\nmax = 0.01\npopulation = "people.csv"',
}


@pytest.mark.parametrize("release", ["", "max_suppression = 0.1", 'max_suppression = 0.1\nsuppressed = "keep"'])
@pytest.mark.parametrize("name", MODELS)
def test_a_release_keeps_the_promise_by_the_definition_and_a_check_agrees(place, name, release):
    asked = place.policy(MODELS[name], release)
    made = shoal.anonymize(place.data, asked)
    found = Counter(rows_of(made.table))
    stars = found.pop(("*", "*"), 0) if made.suppressed and "keep" in release else 0
    living = place.living(made.levels)
    match name:
        case "k-map":
            assert min(living[labels] for labels in found) >= 6
        case "presence":
            assert all(n / living[labels] <= 0.5 for labels, n in found.items())
        case "presence from below":
            assert not made.suppressed  # who is gone has a share of 0
            assert all(0.1 <= found[labels] / n <= 0.6 for labels, n in living.items())
        case "uniqueness":
            alone = sum(n for labels, n in found.items() if living[labels] <= 1)
            assert alone <= 0.01 * (sum(found.values()) + stars)
    assert made.suppressed == 80 - sum(found.values())
    assert shoal.check(made.table, asked).holds
    assert not shoal.check(place.data, _without_names(asked)).holds


def _without_names(policy: shoal.Policy) -> shoal.Policy:
    """The same for a table that still has its identifiers."""
    fields = policy.model_dump(mode="json", exclude_none=True)
    fields["columns"]["name"]["role"] = "plain"
    return shoal.Policy.of(fields, policy.folder)


@pytest.mark.parametrize("name", MODELS)
def test_raw_data_is_judged_by_its_own_values(place, name):
    (verdict,) = shoal.check(place.data, _without_names(place.policy(MODELS[name]))).verdicts
    living, found = Counter(place.people), Counter(place.sample)
    worst = {
        "k-map": min(living[row] for row in found),
        "presence": max(n / living[row] for row, n in found.items()),
        "presence from below": max(n / living[row] for row, n in found.items()),
        "uniqueness": sum(n for row, n in found.items() if living[row] == 1) / 80,
    }[name]
    assert verdict.worst == pytest.approx(worst)
    assert not verdict.holds


def test_people_of_whom_nobody_is_in_the_table_break_a_lower_bound(place):
    # Everybody of one age is in the table, half of them; nobody of the other is.
    place.write("people.csv", "age,zip", [("20", "11")] * 4 + [("30", "11")] * 4)
    half = pa.table({"age": ["20", "20"], "zip": ["11", "11"]})
    bound = 'model = "delta-presence"\nlow = 0.1\nhigh = 0.9\npopulation = "people.csv"'
    assert not shoal.check(half, place.policy(bound)).holds
    assert shoal.check(half, place.policy(bound.replace("low = 0.1", "low = 0.0"))).holds
    both = pa.table({"age": ["20", "30"], "zip": ["11", "11"]})
    assert shoal.check(both, place.policy(bound)).holds
    release = shoal.anonymize(half.append_column("name", pa.array(["x", "y"])), place.policy(bound))
    assert release.levels["age"] >= 2  # 20-39 has both


def test_a_release_written_to_a_file_is_counted_again_with_the_population(place):
    asked = place.policy(MODELS["k-map"])
    release = shoal.anonymize(place.data, asked)
    certificate = release.save(place.folder / "safe.csv")
    (requirement,) = certificate["requirements"]
    assert requirement["asked"] == "6-map"
    assert requirement["figure"] == "k_map"
    with (place.folder / "safe.csv").open(encoding="utf-8", newline="") as file:
        written = [(row["age"], row["zip"]) for row in csv.DictReader(file)]
    living = place.living(release.levels)
    assert requirement["worst"] == min(living[row] for row in written) >= 6
    assert shoal.check(place.folder / "safe.csv", asked).holds


def test_k_map_needs_no_more_generalization_than_k_anonymity_of_the_same_k(place):
    of_people = shoal.anonymize(place.data, place.policy(MODELS["k-map"]))
    of_records = shoal.anonymize(place.data, place.policy('model = "k-anonymity"\nk = 6'))
    assert of_people.loss["loss"] < of_records.loss["loss"]
    assert of_people.measured["k"] < 6


def test_a_population_may_be_a_parquet_file_with_columns_of_other_types(place):
    asked = place.policy(MODELS["k-map"].replace(".csv", ".parquet"))
    table = pa.table({"zip": [area for _, area in place.people], "age": [int(age) for age, _ in place.people]})
    pq.write_table(table, place.folder / "people.parquet")
    by_csv = shoal.anonymize(place.data, place.policy(MODELS["k-map"]))
    assert shoal.anonymize(place.data, asked).levels == by_csv.levels


def test_more_of_the_people_than_columns_of_the_policy_may_be_known(place):
    place.write("people.csv", "zip,income,age", [(area, "1000", age) for age, area in place.people])
    assert shoal.anonymize(place.data, place.policy(MODELS["k-map"])).suppressed == 0


# --- what is wrong with a population -------------------------------------------------------------------------------


def test_who_is_not_in_the_population_counts_for_nobody(place):
    place.write("people.csv", "age,zip", place.people[40:])  # half of the table is missing there
    asked = place.policy(MODELS["k-map"], "max_suppression = 1.0")
    release = shoal.anonymize(place.data, asked)
    place.people = place.people[40:]
    living = place.living(release.levels)
    assert min(living[row] for row in rows_of(release.table)) >= 6


def test_a_population_smaller_than_k_makes_it_impossible(place):
    place.write("people.csv", "age,zip", place.people[:5])
    with pytest.raises(InfeasibleError, match="6-map"):
        shoal.anonymize(place.data, place.policy(MODELS["k-map"]))


def test_more_records_than_people_are_present_beyond_any_share(place):
    place.write("people.csv", "age,zip", place.people[:79])
    with pytest.raises(InfeasibleError):
        shoal.anonymize(place.data, place.policy(MODELS["presence"].replace("0.5", "1.0")))


@pytest.mark.parametrize("command", ["anonymize", "check"])
def test_a_population_without_a_column_of_the_policy_is_refused_with_the_column(place, command):
    place.write("people.csv", "age", [("20",), ("30",)])
    asked = place.policy(MODELS["k-map"])
    with pytest.raises(PolicyError, match=r"population 'people\.csv' has no column 'zip'"):
        getattr(shoal, command)(place.data, asked)


@pytest.mark.parametrize("command", ["anonymize", "check"])
def test_a_population_that_is_not_there_is_refused_with_its_name(place, command):
    asked = place.policy(MODELS["k-map"].replace("people", "nobody"))
    with pytest.raises(DataError, match=r"nobody\.csv does not exist"):
        getattr(shoal, command)(place.data, asked)


def test_a_population_of_nobody_is_refused(place):
    place.write("people.csv", "age,zip", [])
    with pytest.raises(DataError, match=r"people\.csv"):
        shoal.anonymize(place.data, place.policy(MODELS["k-map"]))


def test_a_value_of_the_population_that_cannot_be_generalized_is_counted_and_not_shown(place):
    place.write("people.csv", "age,zip", [*place.people, (SECRET, "11")])
    with pytest.raises(UncoveredValueError) as error:
        shoal.anonymize(place.data, place.policy(MODELS["k-map"]))
    assert "'age'" in str(error.value)
    assert "1 of" in str(error.value)
    assert SECRET not in str(error.value)


def test_a_table_of_the_population_is_never_overwritten(place):
    place.policy(MODELS["k-map"])
    before = (place.folder / "people.csv").read_bytes()
    arguments = ["anonymize", str(place.data), "-p", str(place.folder / "policy.toml"), "--force", "-q", "-o"]
    result = CliRunner().invoke(app, [*arguments, str(place.folder / "people.csv")])
    assert result.exit_code == 2
    assert (place.folder / "people.csv").read_bytes() == before


def test_the_command_line_finds_the_population_beside_the_policy(place, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    place.policy(MODELS["k-map"])
    policy, out = str(place.folder / "policy.toml"), str(place.folder / "safe.csv")
    made = CliRunner().invoke(app, ["anonymize", str(place.data), "-p", policy, "-o", out, "--json"])
    assert made.exit_code == 0
    assert json.loads(made.stdout)["requirements"][0]["asked"] == "6-map"
    assert SECRET not in made.output
    assert CliRunner().invoke(app, ["check", out, "-p", policy]).exit_code == 0


@pytest.mark.parametrize(
    ("require", "release", "says"),
    [
        (
            MODELS["k-map"] + "\n[[require]]\n" + MODELS["presence"].replace("people", "others"),
            "",
            "name one population",
        ),
        (MODELS["k-map"], 'nulls = "wildcard"', "cannot be combined with a population"),
    ],
)
def test_a_policy_with_two_populations_or_wildcards_is_refused(place, require, release, says):
    with pytest.raises(PolicyError, match=says):
        place.policy(require, release)


def test_two_models_may_share_a_population(place):
    asked = place.policy(MODELS["k-map"] + "\n[[require]]\n" + MODELS["presence"])
    assert asked.population == "people.csv"
    assert asked.files == (place.folder / "people.csv",)
    assert [verdict.holds for verdict in shoal.anonymize(place.data, asked).verdicts.verdicts] == [True, True]


def test_nulls_of_the_population_are_a_value_of_their_own(place):
    place.write("people.csv", "age,zip", [("20", "11")] * 3 + [("", "11")] * 3)
    rows = pa.table({"age": ["20", None], "zip": ["11", "11"], "name": ["x", "y"]})
    asked = place.policy('model = "k-map"\nk = 3\npopulation = "people.csv"')
    assert shoal.anonymize(rows, asked).levels["age"] == 0
    asked = place.policy('model = "k-map"\nk = 4\npopulation = "people.csv"')
    assert shoal.anonymize(rows, asked).levels["age"] == 3  # only the top joins the null with others
