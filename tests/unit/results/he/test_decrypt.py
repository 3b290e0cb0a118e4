"""Decrypted results are those of plain numbers, exactly or within the stated error; else nothing is shown."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import he
from shoal.errors import CiphertextError, DataError
from shoal.results.he.computation import Computation, NumberColumn
from shoal.results.he.container import read_container, write_container
from shoal.results.he.decrypt import solution

Pairs = dict[str, tuple[he.EncryptionKey, he.EncryptionKey]]


@pytest.mark.parametrize("scheme", ["bfv", "ckks"])
def test_tenseal_getting_started(scheme: str, pairs: Pairs) -> None:
    """The example of TenSEAL's README: the sum, the product and the dot product of two small vectors."""
    secret, public = pairs[scheme]
    vectors = pa.table({"v1": [0, 1, 2, 3, 4], "v2": [4, 3, 2, 1, 0]})
    table = he.encrypt(vectors, public, bounds={"v1": (0, 4), "v2": (0, 4)})
    made = he.compute(table, public, score={"added": {"v1": 1, "v2": 1}}, regression=[("v1", "v2")], mask=False)
    opened = he.decrypt(made, secret)
    assert opened.scores is not None
    assert opened.scores["added"].to_pylist() == pytest.approx([4] * 5)
    assert opened.figures["regression of v1"] == pytest.approx({"intercept": 4, "v2": -1}, abs=1e-3)
    product = made.computation.totals.index(next(item for item in made.computation.totals if len(item.columns) == 2))
    slots = secret.ciphertext(made.parts[product]).decrypt()[:5]
    assert slots == pytest.approx([0, 3, 4, 3, 0], abs=1e-4)
    assert sum(slots) == pytest.approx(10, abs=1e-4)


numbers = st.lists(
    st.tuples(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6)), min_size=3, max_size=20
).filter(lambda rows: max(row[1] for row in rows) - min(row[1] for row in rows) > 10**5)
weights = st.integers(-(10**4), 10**4).filter(bool).map(lambda n: Fraction(n, 1000))


@settings(max_examples=5)
@given(rows=numbers, w=weights, c=weights)
def test_bfv_is_exact(rows: list[tuple[int, int]], w: Fraction, c: Fraction, pairs: Pairs) -> None:
    opened = computed(rows, w, c, pairs["bfv"])
    x = [Fraction(a, 100) for a, _ in rows]
    y = [Fraction(b, 100) for _, b in rows]
    assert opened.figures["sum of x"] == float(sum(x))
    assert opened.figures["mean of y"] == float(sum(y) / len(y))
    assert opened.scores is not None
    assert opened.scores["s"].to_pylist() == [float(w * a - b + c) for a, b in zip(x, y, strict=True)]
    slope, intercept = least_squares(y, x)
    assert opened.figures["regression of x"] == {"intercept": float(intercept), "y": float(slope)}
    assert opened.measured == 0


@settings(max_examples=5)
@given(rows=numbers, w=weights, c=weights)
def test_ckks_is_within_the_error_that_it_states(
    rows: list[tuple[int, int]], w: Fraction, c: Fraction, pairs: Pairs
) -> None:
    x = [Fraction(a, 100) for a, _ in rows]
    y = [Fraction(b, 100) for _, b in rows]
    opened = computed(rows, w, c, pairs["ckks"])
    assert abs(opened.figures["sum of x"] - float(sum(x))) <= opened.errors["sum of x"]
    assert abs(opened.figures["mean of y"] - float(sum(y) / len(y))) <= opened.errors["mean of y"] < 1e-5
    assert opened.scores is not None
    for found, a, b in zip(opened.scores["s"].to_pylist(), x, y, strict=True):
        assert abs(found - float(w * a - b + c)) <= opened.errors["s"] < 1e-4
    slope, intercept = least_squares(y, x)
    found, error = opened.figures["regression of x"], opened.errors["regression of x"]
    assert abs(found["y"] - float(slope)) <= error["y"]
    assert abs(found["intercept"] - float(intercept)) <= error["intercept"]


def computed(
    rows: list[tuple[int, int]], w: Fraction, c: Fraction, pair: tuple[he.EncryptionKey, he.EncryptionKey]
) -> he.DecryptedResult:
    """All that can be computed of two columns with two decimals."""
    secret, public = pair
    table = pa.table({"x": [f"{a / 100:.2f}" for a, _ in rows], "y": [b / 100 for _, b in rows]})
    decimals = {"x": 2, "y": 2} if public.parameters.exact else None
    made = he.encrypt(table, public, bounds={"x": (-10000, 10000), "y": (-10000, 10000)}, decimals=decimals)
    score = he.LinearScore({"x": w, "y": -1}, c)
    return he.decrypt(
        he.compute(made, public, sum=["x"], mean=["y"], score={"s": score}, regression=[("x", "y")]), secret
    )


def least_squares(x: list[Fraction], y: list[Fraction]) -> tuple[Fraction, Fraction]:
    n = len(x)
    slope = (n * sum(a * b for a, b in zip(x, y, strict=True)) - sum(x) * sum(y)) / (
        n * sum(a * a for a in x) - sum(x) ** 2
    )
    return Fraction(slope), Fraction((sum(y) - slope * sum(x)) / n)


@pytest.mark.parametrize("scheme", ["bfv", "ckks"])
def test_numpy_on_more_rows_than_a_ciphertext_holds(scheme: str, pairs: Pairs) -> None:
    secret, public = pairs[scheme]
    rng = np.random.default_rng(5)
    n = 17_000
    x, z = rng.integers(0, 100, n), rng.integers(-50, 50, n)
    y = 3 * x - 2 * z + rng.integers(-9, 9, n)
    bounds = {"x": (0, 100), "y": (-1000, 1000), "z": (-50, 50)}
    table = he.encrypt(pa.table({"x": x, "y": y, "z": z}), public, bounds=bounds)
    made = he.compute(table, public, sum=["x"], score={"s": {"x": 0.25, "z": 3}}, regression=[("y", "x", "z")])
    opened = he.decrypt(made, secret)
    assert abs(opened.figures["sum of x"] - x.sum()) <= opened.errors["sum of x"]
    assert opened.scores is not None
    assert np.abs(opened.scores["s"].to_numpy() - (0.25 * x + 3 * z)).max() <= opened.errors["s"]
    oracle = np.linalg.lstsq(np.c_[np.ones(n), x, z], y, rcond=None)[0]
    found, error = opened.figures["regression of y"], opened.errors["regression of y"]
    for term, value in zip(["intercept", "x", "z"], oracle, strict=True):
        assert abs(found[term] - value) <= error[term] + 1e-9
    assert (opened.measured == 0) is (scheme == "bfv")


def one_result(pair: tuple[he.EncryptionKey, he.EncryptionKey], **asked: Any) -> he.EncryptedResult:
    table = he.encrypt(pa.table({"age": [31, 45, 28]}), pair[1], bounds={"age": (0, 120)})
    return he.compute(table, pair[1], **(asked or {"sum": ["age"]}))


def test_a_wrong_key_shows_nothing(pairs: Pairs) -> None:
    made = one_result(pairs["bfv"])
    with pytest.raises(CiphertextError, match="another pair of keys"):
        he.decrypt(made, pairs["other"][0])
    forged = replace(made, key=pairs["other"][0].identity)
    with pytest.raises(CiphertextError, match="known values in the ciphertext did not come out right"):
        he.decrypt(forged, pairs["other"][0])
    with pytest.raises(CiphertextError, match="other parameters"):
        he.decrypt(replace(made, key=pairs["ckks"][0].identity), pairs["ckks"][0])


@pytest.mark.parametrize("scheme", ["bfv", "ckks"])
def test_another_computation_than_the_header_says_shows_nothing(scheme: str, pairs: Pairs) -> None:
    secret, public = pairs[scheme]
    made = one_result(pairs[scheme])
    column = made.packing.columns["age"]
    others = [
        replace(made, packing=replace(made.packing, n_rows=(20_000,))),
        replace(made, packing=replace(made.packing, columns={"age": replace(column, high=Fraction(500))})),
        replace(made, parts=[(public.ciphertext(made.parts[0]) * 2).serialize()]),
        replace(made, computation=Computation(score={"s": he.LinearScore({"age": 2})})),
        replace(made, parts=[public.encrypted([0 if scheme == "bfv" else 0.0] * public.parameters.slots).serialize()]),
    ]
    for other in others:
        with pytest.raises(CiphertextError, match="nothing is shown"):
            he.decrypt(other, secret)


def test_an_overflow_of_noise_is_noticed(pairs: Pairs) -> None:
    secret, public = pairs["bfv"]
    made = one_result(pairs["bfv"], sum=["age"], mask=False)
    vector = public.ciphertext(made.parts[0])
    for _ in range(130):  # the value in a slot is right modulo the plain modulus, until noise takes over
        vector = vector + vector
    with pytest.raises(CiphertextError, match="nothing is shown"):
        he.decrypt(replace(made, parts=[vector.serialize()]), secret)


def test_a_forged_header_is_an_error(pairs: Pairs, tmp_path: Path) -> None:
    header, parts = read_container(one_result(pairs["bfv"]).save(tmp_path / "a"), "result")
    for change in (
        {"rows": []},
        {"rows": [10**30]},
        {"rows": [3, "x"]},
        {"computation": {"sum": ["age"], "mean": [], "score": {}, "regression": [["a"]]}},
        {"computation": {"sum": ["age", "cost"], "mean": [], "score": {}, "regression": []}},
        {"columns": [NumberColumn("age", Fraction(0), Fraction(10**50)).as_dict()]},
        {"parameters": header["parameters"] | {"coefficient_bits": [60] * 5}},
    ):
        path = write_container(tmp_path / "b", {**header, **change}, parts, force=True)
        with pytest.raises(CiphertextError):
            he.decrypt(path, pairs["bfv"][0])
    read = he.EncryptedResult.load(tmp_path / "a")
    assert he.decrypt(read, pairs["bfv"][0]).figures == {"sum of age": 104}


def test_a_truncated_result_is_an_error(pairs: Pairs, tmp_path: Path) -> None:
    whole = one_result(pairs["bfv"]).save(tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CiphertextError, match="damaged or incomplete"):
        he.decrypt(tmp_path / "a", pairs["bfv"][0])


def test_a_damaged_ciphertext_with_a_fitting_digest_shows_nothing(pairs: Pairs) -> None:
    made = one_result(pairs["bfv"])
    whole = made.parts[0]
    for damaged in (b"", whole[:1000], whole[:-100], whole[:5000] + bytes(100) + whole[5100:]):
        with pytest.raises(CiphertextError):
            he.decrypt(replace(made, parts=[damaged]), pairs["bfv"][0])


def test_figures_about_few_rows_come_with_a_warning(pairs: Pairs) -> None:
    notes = he.decrypt(one_result(pairs["bfv"]), pairs["bfv"][0]).notes
    assert "The figures are about 3 rows only, and can reveal a person." in notes
    table = he.encrypt(pa.table({"age": [31] * 10}), pairs["bfv"][1], bounds={"age": (0, 120)})
    assert not any(
        "rows only" in note
        for note in he.decrypt(he.compute(table, pairs["bfv"][1], sum=["age"]), pairs["bfv"][0]).notes
    )


@pytest.mark.parametrize("size", [0.0, 1.0, 1e4])
def test_the_stated_error_is_never_exceeded_and_not_absurd(size: float, pairs: Pairs) -> None:
    """Every slot of several ciphertexts, fresh and after a product: the bound holds for each."""
    secret, public = pairs["ckks"]
    values = np.random.default_rng(int(size)).uniform(-size, size, 4096)
    bound = public.parameters.fresh_error(size)
    fresh = np.abs(np.array(public.encrypted(values.tolist()).decrypt(secret.context.secret_key())) - values).max()
    assert fresh <= bound < max(1.0, fresh * 1000)
    vector = public.encrypted(values.tolist())
    product = np.array((vector * vector).decrypt(secret.context.secret_key()))
    assert np.abs(product - values**2).max() <= 2 * size * bound + bound**2 + size**2 * 2.0**-44


def test_digits_that_are_noise_are_not_shown(pairs: Pairs) -> None:
    opened = he.decrypt(one_result(pairs["ckks"], mean=["age"]), pairs["ckks"][0])
    assert opened.figures["mean of age"] == 34.666667
    assert any("Never give them to whoever computed them" in note for note in opened.notes)
    assert 0 < opened.measured < opened.errors["mean of age"]


def test_a_regression_that_the_error_could_change_is_not_told(pairs: Pairs) -> None:
    """Ages that differ by a thousandth, in a column with wide bounds."""
    secret, public = pairs["ckks"]
    table = pa.table({"x": [1.0, 2.0, 3.0], "y": [50.001, 50.002, 50.001]})
    made = he.encrypt(table, public, bounds={"x": (0, 10), "y": (0, 10**5)})
    with pytest.raises(DataError, match="cannot be told from the error of the encryption"):
        he.decrypt(he.compute(made, public, regression=[("x", "y")]), secret)


def test_equations_are_solved_exactly() -> None:
    a, b, c = Fraction(0), Fraction(2), Fraction(3)
    assert solution([[a, b, c], [b, c, c]]) == [Fraction(-3, 4), Fraction(3, 2)]
    with pytest.raises(DataError, match="depend on each other"):
        solution([[b, b, c], [b, b, c]])
