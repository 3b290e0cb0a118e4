"""The file of parties: fingerprints and certificates are checked, keys belong to their party."""

import re
import ssl
from pathlib import Path

import pytest

from shoal.errors import DataError
from shoal.results.smc import Parties, make_party


@pytest.fixture
def blocks(tmp_path: Path) -> list[str]:
    return [make_party(tmp_path / f"p{i}", f"127.0.0.1:{7000 + i}")[1].read_text(encoding="utf-8") for i in (1, 2, 3)]


def load(tmp_path: Path, blocks: list[str]) -> Parties:
    file = tmp_path / "parties.toml"
    file.write_text("\n".join(blocks), encoding="utf-8")
    return Parties.load(file)


def test_three_parties_with_one_colluder_at_most(tmp_path: Path, blocks: list[str]) -> None:
    found = load(tmp_path, blocks)
    assert [member.address for member in found.members] == ["127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003"]
    assert found.threshold == 1
    assert (tmp_path / "p1.key").stat().st_mode & 0o777 == 0o600
    server, clients = found.contexts(1, tmp_path / "p1.key", None)
    for context in (server, *clients.values()):
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.minimum_version == ssl.TLSVersion.TLSv1_3
    assert server.cert_store_stats()["x509"] == 2
    assert [client.cert_store_stats()["x509"] for client in clients.values()] == [1, 1]


def test_two_parties_are_refused(tmp_path: Path, blocks: list[str]) -> None:
    with pytest.raises(DataError, match="2 parties; at least 3"):
        load(tmp_path, blocks[:2])


def test_a_party_listed_twice_is_refused(tmp_path: Path, blocks: list[str]) -> None:
    with pytest.raises(DataError, match="two parties have the same name"):
        load(tmp_path, [*blocks, blocks[0]])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r'fingerprint = "..', 'fingerprint = "zz', "does not have the fingerprint"),
        (r'certificate = "....', 'certificate = "AAAA', "cannot be read"),
        (r'address = ".*"', 'address = "nowhere"', "is not host:port"),
        (r"name = .*", "", "lacks name"),
        (r"name = ", "nickname = 'x'\nname = ", "unknown field 'nickname'"),
    ],
)
def test_a_block_that_was_changed_is_refused(tmp_path: Path, blocks: list[str], old, new, message) -> None:
    with pytest.raises(DataError, match=message):
        load(tmp_path, [blocks[0], re.sub(old, new, blocks[1], count=1), blocks[2]])


def test_the_key_of_another_party_is_refused(tmp_path: Path, blocks: list[str]) -> None:
    found = load(tmp_path, blocks)
    found.private_key(2, tmp_path / "p2.key")
    with pytest.raises(DataError, match=r"is not the key of party 1 \(p1\)"):
        found.private_key(1, tmp_path / "p2.key")
    with pytest.raises(DataError, match="there is no party 4"):
        found.private_key(4, tmp_path / "p2.key")
