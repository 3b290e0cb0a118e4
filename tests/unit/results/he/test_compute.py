"""The evaluator: what it needs, what it hides, what it refuses."""

from pathlib import Path

import pyarrow as pa
import pytest

from shoal import he
from shoal.errors import CiphertextError, PolicyError
from shoal.results.he.container import read_container, write_container
from shoal.results.he.parameters import PROBES

Pairs = dict[str, tuple[he.EncryptionKey, he.EncryptionKey]]

PATIENTS = pa.table({"age": [31, 45, 28, 70], "stay": [2, 5, 1, 9]})
BOUNDS = {"age": (0, 120), "stay": (0, 60)}


def test_several_owners_encrypt_with_one_public_key(pairs: Pairs, tmp_path: Path) -> None:
    secret, public = pairs["bfv"]
    files = [he.encrypt(PATIENTS.slice(i, 2), public, bounds=BOUNDS).save(tmp_path / f"{i}.encrypted") for i in (0, 2)]
    opened = he.decrypt(he.compute(files, public, mean=["age"], regression=[("stay", "age")]), secret)
    alone = he.encrypt(PATIENTS, public, bounds=BOUNDS)
    assert (
        opened.figures
        == he.decrypt(he.compute(alone, public, mean=["age"], regression=[("stay", "age")]), secret).figures
    )
    with pytest.raises(PolicyError, match="one table at a time"):
        he.compute(files, public, score={"s": {"age": 1}})
    other = he.encrypt(PATIENTS, public, bounds=BOUNDS | {"age": (0, 119)})
    with pytest.raises(PolicyError, match="different columns, bounds or decimals"):
        he.compute([alone, other], public, sum=["age"])


def test_a_mask_hides_rows_from_the_owner_of_the_secret_key(pairs: Pairs) -> None:
    secret, public = pairs["bfv"]
    table = he.encrypt(PATIENTS, public, bounds=BOUNDS)
    slots = {}
    for mask in (True, False):
        made = he.compute(table, public, sum=["age"], mask=mask)
        slots[mask] = secret.ciphertext(made.parts[0]).decrypt()
        opened = he.decrypt(made, secret)
        assert opened.figures == {"sum of age": 174}
        assert any("not masked" in note for note in opened.notes) is not mask
    assert slots[False][:5] == [31, 45, 28, 70, 0]
    modulus = public.parameters.plain_modulus
    masked = slots[True][:-PROBES]
    assert sum(masked) % modulus == 174
    assert len({*masked}) == len(masked)
    # Uniform modulo 2**60: a slot below 2**40 has a chance of one in a million.
    assert sum(abs(n) < 2**40 for n in masked) < 5
    assert slots[True][-PROBES:] == slots[False][-PROBES:]


def test_ckks_has_no_mask(pairs: Pairs) -> None:
    public = pairs["ckks"][1]
    table = he.encrypt(PATIENTS, public, bounds=BOUNDS)
    with pytest.raises(PolicyError, match="cannot be masked"):
        he.compute(table, public, sum=["age"], mask=True)
    with pytest.raises(PolicyError, match="too small"):
        he.compute(table, public, score={"s": {"age": 1e-9}})
    with pytest.raises(PolicyError, match="too large"):
        he.compute(table, public, score={"s": {"age": 1e12}})


def test_what_is_not_encrypted_cannot_be_computed(pairs: Pairs) -> None:
    public = pairs["bfv"][1]
    table = he.encrypt(PATIENTS, public, bounds=BOUNDS)
    with pytest.raises(PolicyError, match="column 'cost' is not in the encrypted table"):
        he.compute(table, public, sum=["cost"])
    with pytest.raises(PolicyError, match="nothing is asked"):
        he.compute(table, public)
    with pytest.raises(PolicyError, match="no encrypted table"):
        he.compute([], public, sum=["age"])
    with pytest.raises(PolicyError, match="overflow"):
        he.compute(table, public, score={"s": {"age": "0.1234567890123456789"}})


@pytest.mark.parametrize("name", ["other", "ckks"])
def test_tables_of_another_key_are_refused(name: str, pairs: Pairs) -> None:
    table = he.encrypt(PATIENTS, pairs["bfv"][1], bounds=BOUNDS)
    with pytest.raises(CiphertextError, match="another pair of keys"):
        he.compute(table, pairs[name][1], sum=["age"])


def test_a_ciphertext_of_other_parameters_is_refused(pairs: Pairs, tmp_path: Path) -> None:
    """Also where somebody wrote the identity of this key into its header."""
    table = he.encrypt(PATIENTS, pairs["ckks"][1], bounds=BOUNDS)
    header, parts = read_container(table.save(tmp_path / "a"), "table")
    own = pairs["bfv"][1]
    forged = header | {"key": own.identity, "parameters": own.parameters.as_dict()}
    path = write_container(tmp_path / "b", forged, parts, force=False)
    with pytest.raises(CiphertextError, match="cannot be read with the parameters"):
        he.compute(path, own, sum=["age"])
