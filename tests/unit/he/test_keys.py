"""Keys: who may read them, and which one is accepted where."""

import stat
import sys
from pathlib import Path

import pytest

from shoal import he
from shoal.errors import CiphertextError, OutputError, ShoalError
from shoal.he.container import read_container, write_container
from shoal.he.keys import loaded_key


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
