"""Risks of statistical offices' test tables against what sdcMicro computes on them, record by record."""

import csv

import numpy as np
import pyarrow as pa
import pytest
from scipy.integrate import quad

from shoal.risk import frequencies, individual_risk, suda
from shoal.risk.individual import household_risk

FIVE = ["urbrur", "roof", "walls", "water", "sex"]
SEVEN = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
FRANC = ["Key1", "Key2", "Key3", "Key4"]
TABLES = [("francdat", FRANC, "w"), ("testdata5", FIVE, "sampling_weight"), ("testdata7", SEVEN, "sampling_weight")]


def read(path):
    """Columns of texts; an empty field is a null."""
    with path.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {name: [row[name] or None for row in rows] for name in rows[0]}


def floats(columns, name):
    return np.array([np.nan if text in (None, "NA", "NaN") else float(text) for text in columns[name]])


def survey(shared, name):
    return pa.table(read(shared / "data" / "sdc" / f"in_{name.rstrip('57')}.csv"))


@pytest.mark.parametrize(("name", "keys", "weight"), TABLES)
def test_frequencies_and_individual_risk_are_those_of_sdcmicro(shared, name, keys, weight):
    oracle = read(shared / "oracle" / "sdc" / f"risk_{name}.csv")
    risk = individual_risk(survey(shared, name), keys, weight=weight)
    assert risk.sample.tolist() == floats(oracle, "fk").tolist()
    assert risk.population == pytest.approx(floats(oracle, "Fk"), rel=1e-12)
    exact = floats(oracle, "rk_exact")
    known = ~np.isnan(exact)
    assert risk.risks[known] == pytest.approx(exact[known], rel=1e-7)
    unweighted = individual_risk(survey(shared, name), keys)
    assert unweighted.risks == pytest.approx(floats(oracle, "rk_unweighted"), rel=1e-12)


@pytest.mark.parametrize(("name", "keys", "weight"), TABLES[1:])
def test_where_sdcmicro_has_no_answer_the_risk_is_the_integral(shared, name, keys, weight):
    oracle = read(shared / "oracle" / "sdc" / f"risk_{name}.csv")
    risk = individual_risk(survey(shared, name), keys, weight=weight)
    unknown = np.isnan(floats(oracle, "rk_exact"))
    assert unknown.any()
    for f, F, r in set(zip(*(x[unknown].tolist() for x in (risk.sample, risk.population, risk.risks)), strict=True)):
        p = f / F
        by_parts = quad(lambda u, f=f, p=p: u ** (f - 1) / (p + (1 - p) * u), 0, 1, points=[1 - 20 / f], epsrel=1e-12)
        assert r == pytest.approx(p * by_parts[0], rel=1e-9)
    # Its approximation for large classes is known to be close to the truth.
    approximate = floats(oracle, "rk_approx")
    assert risk.risks[unknown] == pytest.approx(approximate[unknown], rel=1e-5)


@pytest.mark.parametrize(("name", "keys", "weight"), TABLES[1:])
def test_household_risk_is_that_of_sdcmicro(shared, name, keys, weight):
    oracle = read(shared / "oracle" / "sdc" / f"risk_{name}.csv")
    data = survey(shared, name)
    homes = np.unique(data["ori_hid"].to_numpy(), return_inverse=True)[1]
    expected = floats(oracle, "hier_risk")
    assert household_risk(floats(oracle, "rk_measure_risk"), homes) == pytest.approx(expected, rel=1e-9)
    # The members' risks differ from sdcMicro's by its approximation only.
    risk = individual_risk(data, keys, weight=weight, household="ori_hid")
    apart = np.abs(risk.risks - floats(oracle, "rk_measure_risk"))
    assert (np.abs(risk.household - expected) <= np.bincount(homes, apart)[homes] + 1e-12).all()


@pytest.mark.parametrize("alpha", ["1", "0.5", "0.1", "0"])
def test_frequencies_with_nulls_are_those_of_sdcmicro_for_every_alpha(shared, alpha):
    oracle = read(shared / "oracle" / "sdc" / "freq_francdat_na.csv")
    found = frequencies(survey(shared, "francdat_na"), FRANC, weight="w", alpha=float(alpha))
    assert found.sample == pytest.approx(floats(oracle, f"fk_a{alpha}"), rel=1e-12)
    assert found.population == pytest.approx(floats(oracle, f"Fk_a{alpha}"), rel=1e-12)


def test_special_uniques_are_those_of_sdcmicro(shared):
    oracle = read(shared / "oracle" / "sdc" / "suda_testdata_7_f0.01_elliot.csv")
    found = suda(survey(shared, "testdata"), SEVEN, sampling_fraction=0.01)
    assert found.scores[found.class_of].tolist() == floats(oracle, "score").tolist()
    assert found.dis[found.class_of] == pytest.approx(floats(oracle, "dis"), abs=1e-7)
    for j, name in enumerate(SEVEN):
        expected = floats(oracle, f"{name}_contribution")
        assert found.contributions[found.class_of, j] == pytest.approx(expected, abs=1e-12)
