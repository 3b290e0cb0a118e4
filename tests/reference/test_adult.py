"""Adult, 30,162 records: every node of the lattice against an independent brute force that agrees with ARX."""

import gzip
import math

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import shoal
from adult import COLUMNS, N, adult_policy
from shoal.engines.local import LocalEngine
from shoal.models.closeness import TCloseness
from shoal.models.diversity import DistinctDiversity
from shoal.models.size import KAnonymity
from shoal.search import Problem
from shoal.search.losses.definitions import LOSSES
from shoal.search.problem import Terms

# ARX's Loss at k = 5: share that may be suppressed, least loss, records suppressed there.
OPTIMA = [(0, 0.5731510, 0), (0.02, 0.3137130, 506), (0.05, 0.2419324, 1_346), (1, 0.2204119, 2_553)]


def policy(folder, *, limit=0.0, **options):
    return adult_policy(folder, objective="arx-loss", max_suppression=limit, **options)


def nodes_of(path):
    """The oracle: one line per node, the first field its levels."""
    with gzip.open(path, "rt") as lines:
        header = next(lines).rstrip("\n").split("\t")[1:]
        for line in lines:
            levels, *figures = line.rstrip("\n").split("\t")
            yield tuple(map(int, levels.split(","))), dict(zip(header, map(float, figures), strict=True))


@pytest.fixture(scope="module")
def folder(shared):
    return shared / "data" / "adult"


@pytest.fixture(scope="module")
def adult(folder):
    options = pa.csv.ParseOptions(delimiter=";")
    text = pa.csv.ConvertOptions(column_types=dict.fromkeys(COLUMNS, pa.string()))
    return pa.csv.read_csv(folder / "adult.csv", parse_options=options, convert_options=text)


@pytest.mark.parametrize(("limit", "loss", "suppressed"), OPTIMA)
def test_the_least_loss_of_adult_is_the_known_one(folder, limit, loss, suppressed):
    release = shoal.anonymize(folder / "adult.csv", policy(folder, limit=limit))
    assert round(release.loss["arx-loss"], 7) == loss
    assert release.suppressed == suppressed
    assert release.recoding.proved
    assert release.measured["k"] >= 5
    assert release.table.num_rows == N - suppressed


@pytest.mark.long
def test_every_node_of_nine_columns_has_the_figures_of_the_oracle(folder, shared):
    table = LocalEngine.of(folder / "adult.csv").count(policy(folder)).table
    problem = Problem(table, (KAnonymity(k=5),), Terms(limit=N))
    objectives = {name: LOSSES[name](problem) for name in LOSSES}
    nodes = []
    for node, oracle in nodes_of(shared / "oracle" / "adult_9qi_k5_all_nodes.tsv.gz"):
        seen = problem.evaluate(node)
        found = {name: loss.published_figure(loss.value(seen)) for name, loss in objectives.items()}
        assert seen.n_suppressed == oracle["suppressed_k5"], node
        assert found["arx-loss"] == pytest.approx(oracle["loss_geo_k5"], abs=1e-9), node
        assert found["discernibility"] == oracle["dm_k5"], node
        assert found["average-class"] == pytest.approx(oracle["aecs_k5"], rel=1e-12), node
        assert found["ambiguity"] == oracle["ambiguity_k5"], node
        assert found["precision"] == pytest.approx(oracle["precision_mean_k5"], abs=1e-9), node
        if seen.n_suppressed == 0:  # ARX counts suppressed cells differently, and in bits
            assert found["entropy"] / math.log(2) == pytest.approx(oracle["entropy_sum_k5"], rel=1e-9), node
        nodes.append(node)
    assert nodes == list(problem.lattice)
    assert len(nodes) == 12_960


@pytest.mark.parametrize(
    ("name", "model"),
    [("distinct-l:3/k5", DistinctDiversity(l=3)), ("t-equal:0.2/k5", TCloseness(t=0.2))],
)
@pytest.mark.long
def test_every_node_of_eight_columns_has_the_figures_of_the_oracle(folder, shared, name, model):
    asked = policy(folder, sensitive=["occupation"])
    models = (KAnonymity(k=5), model)
    table = LocalEngine.of(folder / "adult.csv").count(asked).table
    problem = Problem(table, models, Terms(limit=N, objective="arx-loss"))
    nodes = []
    for node, oracle in nodes_of(shared / "oracle" / "adult_8qi_occupation_k5_all_nodes.tsv.gz"):
        seen = problem.evaluate(node)
        assert seen.n_suppressed == oracle[f"suppressed {name}"], node
        loss = problem.objective.published_figure(problem.objective.value(seen))
        assert loss == pytest.approx(oracle[f"loss_geo {name}"], abs=1e-9), node
        nodes.append(node)
    assert nodes == list(problem.lattice)
    assert len(nodes) == 4_320


# --- what must not matter --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain(adult, folder):
    return shoal.anonymize(adult, policy(folder, limit=0.02))


def require_same_answer(release, other):
    assert release.levels == other.levels
    assert release.loss["arx-loss"] == pytest.approx(other.loss["arx-loss"], rel=1e-12)
    assert release.loss["loss"] == pytest.approx(other.loss["loss"], rel=1e-12)


def test_shuffled_records_give_the_same_release(adult, folder, plain):
    order = np.random.default_rng(3).permutation(N)
    release = shoal.anonymize(adult.take(pa.array(order)), policy(folder, limit=0.02))
    require_same_answer(release, plain)
    assert release.suppressed == plain.suppressed
    assert release.table.equals(plain.table)


@pytest.mark.long
def test_thirty_three_copies_with_k_thirty_three_times_as_large_give_the_same_levels(adult, folder, plain):
    many = pa.concat_tables([adult] * 33)
    release = shoal.anonymize(many, policy(folder, k=5 * 33, limit=0.02))
    require_same_answer(release, plain)
    assert release.suppressed == 33 * plain.suppressed
    assert release.classes == plain.classes


def test_other_names_for_the_same_values_give_the_same_levels(adult, folder, plain, tmp_path):
    columns = {}
    for name in COLUMNS:
        file = f"adult_hierarchy_{name}.csv"
        paths = [line.split(";") for line in (folder / file).read_text().splitlines()]
        # Names in the reverse order of texts, the same on every level; the file keeps the order of its lines.
        labels = sorted({label for path in paths for label in path} - {"*"}, reverse=True)
        named = {label: f"{i:04} ä" for i, label in enumerate(labels)} | {"*": "*"}
        (tmp_path / file).write_text("\n".join(";".join(named[label] for label in path) for path in paths), "utf-8")
        columns[name] = [named[value] for value in adult[name].to_pylist()]
    release = shoal.anonymize(pa.table(columns), policy(tmp_path, limit=0.02))
    require_same_answer(release, plain)
    assert (release.suppressed, release.classes) == (plain.suppressed, plain.classes)
