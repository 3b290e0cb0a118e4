"""Test tables of statistical offices against what sdcMicro computes on them, record by record."""

import csv

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.models.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from shoal.notation import codec
from shoal.tables.domain import domain_of
from shoal.tables.frequency import count_records
from shoal.tables.wildcard import neighbourhoods

KEYS = ("urbrur", "roof", "walls", "water", "sex")
SENSITIVE = ("electcon", "relat")


def read(path):
    """Columns of texts; an empty field is a null."""
    with path.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {name: [row[name] or None for row in rows] for name in rows[0]}


def coded(columns, name):
    return codec.encode_texts(name, pa.chunked_array([pa.array(columns[name], pa.string())]))


@pytest.fixture(scope="module")
def testdata(shared):
    return read(shared / "data" / "sdc" / "in_testdata.csv")


@pytest.fixture(scope="module")
def oracle(shared):
    return read(shared / "oracle" / "sdc" / "ldiv_testdata.csv")


@pytest.fixture(scope="module")
def classes(testdata):
    """The frequency table of the five keys, and the class of each record."""
    domains = dict(domain_of(name, coded(testdata, name), None) for name in SENSITIVE)
    codes = np.column_stack([coded(testdata, name).codes for name in KEYS])
    return count_records(KEYS, codes, domains)


@pytest.mark.parametrize("column", SENSITIVE)
def test_distinct_and_entropy_diversity_are_those_of_sdcmicro_for_every_record(classes, oracle, column):
    table, class_of = classes
    distinct = DistinctDiversity(l=1, column=column).scores(table)[class_of]
    assert distinct.tolist() == [float(x) for x in oracle[f"{column}_Distinct_Ldiversity"]]
    entropy = EntropyDiversity(l=1, column=column).scores(table)[class_of]
    assert entropy.tolist() == pytest.approx([float(x) for x in oracle[f"{column}_Entropy_Ldiversity"]], rel=1e-9)


@pytest.mark.parametrize("column", SENSITIVE)
def test_recursive_diversity_is_that_of_sdcmicro_for_every_record(classes, oracle, column):
    table, class_of = classes
    # sdcMicro tells the greatest ℓ for which the class is recursive (2, ℓ)-diverse.
    holds = [RecursiveDiversity(c=2, l=l, column=column).passes(table)[class_of] for l in range(1, 10)]
    found = np.sum(holds, axis=0)
    assert found.tolist() == [int(x) for x in oracle[f"{column}_Recursive_Ldiversity"]]


def test_measure_tells_the_worst_of_the_same_figures(testdata, oracle):
    figures = shoal.measure(pa.table(testdata), quasi=KEYS, sensitive=SENSITIVE)
    for column in SENSITIVE:
        distinct = [int(x) for x in oracle[f"{column}_Distinct_Ldiversity"]]
        entropy = [float(x) for x in oracle[f"{column}_Entropy_Ldiversity"]]
        assert figures.columns[column]["l"] == min(distinct)
        assert figures.columns[column]["entropy_l"] == pytest.approx(min(entropy), rel=1e-9)


def test_where_null_matches_anything_frequencies_are_those_of_sdcmicro(shared):
    columns = read(shared / "data" / "sdc" / "in_francdat_na.csv")
    keys = ("Key1", "Key2", "Key3", "Key4")
    texts = [coded(columns, name) for name in keys]
    nulls = [len(column.texts) for column in texts]
    codes = np.column_stack([np.where(c.codes < 0, null, c.codes) for c, null in zip(texts, nulls, strict=True)])
    table, class_of = count_records(keys, codes.astype(np.int32), {})
    frequencies = neighbourhoods(table, nulls).counts[class_of]
    expected = read(shared / "oracle" / "sdc" / "freq_francdat_na.csv")["fk_a1"]
    assert frequencies.tolist() == [int(x) for x in expected]


def test_where_null_is_a_value_of_its_own_the_same_records_are_rarer(shared):
    columns = read(shared / "data" / "sdc" / "in_francdat_na.csv")
    figures = shoal.measure(pa.table(columns), quasi=["Key1", "Key2", "Key3", "Key4"])
    assert (figures["records"], figures["classes"], figures["uniques"]) == (8, 7, 6)
