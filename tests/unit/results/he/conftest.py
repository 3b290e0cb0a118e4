"""Two pairs of keys of each scheme, made once."""

from pathlib import Path

import pytest

from shoal import he

Pairs = dict[str, tuple[he.EncryptionKey, he.EncryptionKey]]


@pytest.fixture(scope="session")
def key_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    folder = tmp_path_factory.mktemp("keys")
    schemes = {"bfv": "bfv", "ckks": "ckks", "other": "bfv"}
    return {name: he.make_key_pair(folder / name, scheme=scheme) for name, scheme in schemes.items()}


@pytest.fixture(scope="session")
def pairs(key_files: dict[str, tuple[Path, Path]]) -> Pairs:
    """Secret and public key by name."""
    return {
        name: (he.EncryptionKey.load(secret, secret=True), he.EncryptionKey.load(public))
        for name, (secret, public) in key_files.items()
    }
