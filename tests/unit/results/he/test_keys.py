"""Keys: who may read them, and which one is accepted where."""

import hashlib
import stat
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal import he
from shoal.errors import CiphertextError, OutputError, ShoalError
from shoal.results.he.container import read_container, write_container
from shoal.results.he.keys import loaded_key
from shoal.results.he.parameters import EncryptionParameters


def test_only_the_owner_may_read_the_secret_key(key_files: dict[str, tuple[Path, Path]]) -> None:
    secret, public = key_files["bfv"]
    assert (secret.name, public.name) == ("bfv.secret.key", "bfv.public.key")
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_the_public_key_contains_no_secret_and_is_small(key_files: dict[str, tuple[Path, Path]]) -> None:
    for name in ("bfv", "ckks"):
        public = he.EncryptionKey.load(key_files[name][1])
        assert not public.context.has_secret_key()
        assert not public.context.has_galois_keys()
        assert not public.context.has_relin_keys()
        assert key_files[name][1].stat().st_size < 600_000


def test_keys_of_a_pair_have_the_same_identity(key_files: dict[str, tuple[Path, Path]]) -> None:
    secret, public = key_files["bfv"]
    pair = he.EncryptionKey.load(secret, secret=True), he.EncryptionKey.load(public)
    assert pair[0].identity == pair[1].identity != he.EncryptionKey.load(key_files["other"][1]).identity


def test_one_key_is_not_accepted_for_the_other(key_files: dict[str, tuple[Path, Path]]) -> None:
    secret, public = key_files["bfv"]
    with pytest.raises(CiphertextError, match="is a secret key, not a public key"):
        he.EncryptionKey.load(secret)
    with pytest.raises(CiphertextError, match="is a public key, not a secret key"):
        he.EncryptionKey.load(public, secret=True)
    with pytest.raises(CiphertextError, match="a public key is needed"):
        loaded_key(he.EncryptionKey.load(secret, secret=True))


def test_a_secret_key_that_is_called_public_is_refused(key_files: dict[str, tuple[Path, Path]], tmp_path: Path) -> None:
    header, parts = read_container(key_files["bfv"][0], "secret key")
    forged = write_container(tmp_path / "a.public.key", header | {"kind": "public key"}, parts, force=False)
    with pytest.raises(CiphertextError, match="not what its header says"):
        he.EncryptionKey.load(forged)


def test_a_key_whose_header_tells_other_parameters_is_refused(
    key_files: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    header, parts = read_container(key_files["bfv"][1], "public key")
    other, _ = read_container(key_files["ckks"][1], "public key")
    forged = write_container(tmp_path / "a", header | {"parameters": other["parameters"]}, parts, force=False)
    with pytest.raises(CiphertextError, match="not what its header says"):
        he.EncryptionKey.load(forged)
    empty = write_container(tmp_path / "b", header, [b"nothing"], force=False)
    with pytest.raises(CiphertextError):
        he.EncryptionKey.load(empty)


@pytest.mark.parametrize(
    ("claimed", "scheme", "settings", "scale"),
    [
        ("ckks", "CKKS", {"degree": 8192, "bits": [60, 40, 40, 60]}, 2.0**5),  # results would lose their digits
        ("ckks", "BFV", {"degree": 8192, "bits": [60, 40, 40, 60], "plain": 1032193}, None),
        ("bfv", "BFV", {"degree": 8192, "bits": [43, 43, 44, 44, 44], "plain": 1032193}, None),  # results would wrap
        ("bfv", "CKKS", {"degree": 8192, "bits": [43, 43, 44, 44, 44]}, 2.0**40),
        ("bfv", "BFV", {"degree": 4096, "bits": [36, 36, 37], "plain": 1032193}, None),
        ("ckks", "CKKS", {"degree": 8192, "bits": [60, 60, 40, 40]}, 2.0**40),  # the same bits, in another order
    ],
    ids=["scale", "scheme", "plain modulus", "other scheme", "degree", "primes"],
)
def test_a_public_key_of_somebody_else_is_what_its_header_says(
    claimed: str, scheme: str, settings: dict[str, Any], scale: float | None, tmp_path: Path
) -> None:
    """What a hostile file contains is compared with the parameters that it claims, whose security is known."""
    import tenseal

    plain = {"plain_modulus": settings["plain"]} if "plain" in settings else {}
    made = tenseal.context(
        getattr(tenseal.SCHEME_TYPE, scheme), settings["degree"], coeff_mod_bit_sizes=settings["bits"], **plain
    )
    made.auto_relin = made.auto_rescale = made.auto_mod_switch = False
    if scale is not None:
        made.global_scale = scale
    content = made.serialize(save_secret_key=False, save_galois_keys=False, save_relin_keys=False)
    told = {
        "key": hashlib.sha256(content).hexdigest(),
        "parameters": EncryptionParameters.chosen(claimed, 8192).as_dict(),
    }
    path = write_container(tmp_path / "a.public.key", {"kind": "public key", **told}, [content], force=False)
    with pytest.raises(CiphertextError, match="not what its header says"):
        he.EncryptionKey.load(path)


def test_a_key_that_cannot_encrypt_is_refused(tmp_path: Path) -> None:
    import tenseal

    parameters = EncryptionParameters.chosen("ckks", 8192)
    bits = list(parameters.coefficient_bits)
    symmetric = tenseal.ENCRYPTION_TYPE.SYMMETRIC
    made = tenseal.context(tenseal.SCHEME_TYPE.CKKS, 8192, coeff_mod_bit_sizes=bits, encryption_type=symmetric)
    made.auto_relin = made.auto_rescale = made.auto_mod_switch = False
    made.global_scale = 2.0**40
    content = made.serialize(save_secret_key=False, save_galois_keys=False, save_relin_keys=False)
    told = {"key": hashlib.sha256(content).hexdigest(), "parameters": parameters.as_dict()}
    path = write_container(tmp_path / "a.public.key", {"kind": "public key", **told}, [content], force=False)
    with pytest.raises(CiphertextError):
        he.EncryptionKey.load(path)


def test_the_secret_is_in_no_file_but_its_own(key_files: dict[str, tuple[Path, Path]], tmp_path: Path) -> None:
    """Of the secret key's own bytes, none of a length that could be a coincidence is in what goes to others."""
    secret, public = key_files["bfv"]
    own = he.EncryptionKey.load(secret, secret=True)
    shown = public.read_bytes()
    hidden = own.context.serialize(
        save_public_key=False, save_secret_key=True, save_galois_keys=False, save_relin_keys=False
    )
    bare = own.context.serialize(
        save_public_key=False, save_secret_key=False, save_galois_keys=False, save_relin_keys=False
    )
    key = hidden[len(bare) :]
    assert len(key) > 10_000
    table = he.encrypt(pa.table({"age": [31, 45]}), public, bounds={"age": (0, 120)}).save(tmp_path / "table")
    result = he.compute(table, public, sum=["age"]).save(tmp_path / "result")
    for i in range(0, len(key) - 16, 997):
        piece = key[i : i + 16]
        assert piece in secret.read_bytes()
        assert not any(piece in content for content in (shown, table.read_bytes(), result.read_bytes()))


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.public.key").write_text("mine")
    with pytest.raises(OutputError, match="already exists"):
        he.make_key_pair(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a.public.key"]


def test_without_the_package_the_command_that_installs_it_is_named(
    key_files: dict[str, tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tenseal", None)
    with pytest.raises(ShoalError, match=r"pip install 'shoal\[he\]'"):
        he.EncryptionKey.load(key_files["bfv"][1])
