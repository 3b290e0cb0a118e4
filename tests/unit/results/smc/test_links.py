"""Connections: one address, TLS 1.3, pinned certificates, and nothing that runs what a peer sent."""

from __future__ import annotations

import asyncio
import json
import pickle
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joint_runs import make_parties
from shoal.errors import PartyError
from shoal.results.smc import Parties
from shoal.results.smc.links import _STOPPED, Links, _PlainNumbers, load_mpyc

pytestmark = pytest.mark.xdist_group("parties")


def probed(parties: Parties, folder: Path, probe: Any) -> tuple[Any, str]:
    """Let the third party wait for the others, and meanwhile do something to it; return that and how the wait ended."""

    async def run() -> tuple[Any, str]:
        contexts = parties.contexts(3, folder / "party3.key", None)
        links = Links(parties, 3, contexts, timeout=0.6)

        async def wait() -> None:
            async with links:
                pass

        waiting = asyncio.ensure_future(wait())
        await asyncio.sleep(0.1)
        found = await asyncio.wait_for(probe(), 10)
        with pytest.raises(PartyError) as error:
            await waiting
        return found, str(error.value)

    return asyncio.run(run())


@pytest.fixture
def parties(tmp_path: Path) -> Parties:
    return make_parties(tmp_path, 3)


async def reached(host: str, port: int, context: ssl.SSLContext | None) -> str:
    """Connect, send some bytes, and say what comes back."""
    try:
        reader, writer = await asyncio.open_connection(host, port, ssl=context)
    except ssl.SSLError:
        return "no handshake"
    except OSError:
        return "refused"
    try:
        writer.write(b"\x00\x00" + bytes(100))
        got = await asyncio.wait_for(reader.read(100), 5)
    except (ssl.SSLError, OSError):
        return "closed"
    finally:
        writer.close()
    return "closed" if not got else "answered"


@pytest.mark.skipif(sys.platform != "linux", reason="others have one loopback address")
def test_a_party_listens_on_its_own_address_only(parties: Parties, tmp_path: Path) -> None:
    own = parties.members[2]

    async def probe() -> list[str]:
        def tried(host: str) -> str:
            with socket.socket() as other:
                other.settimeout(2)
                return "open" if other.connect_ex((host, own.port)) == 0 else "closed"

        return [tried(own.host), tried("127.0.0.1"), tried("127.1.1.1")]

    assert probed(parties, tmp_path, probe)[0] == ["open", "closed", "closed"]


def test_strangers_and_old_protocols_get_no_answer_and_disturb_nobody(parties: Parties, tmp_path: Path) -> None:
    own = parties.members[2]
    (tmp_path / "stranger").mkdir()
    stranger = make_parties(tmp_path / "stranger", 3)

    def unverified(**versions: ssl.TLSVersion) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for name, version in versions.items():
            setattr(context, name, version)
        return context

    pinned = parties.contexts(1, tmp_path / "party1.key", None)[1][3]
    old = unverified(maximum_version=ssl.TLSVersion.TLSv1_2)
    unknown = stranger.contexts(1, tmp_path / "stranger" / "party1.key", None)[1][3]
    unknown.load_verify_locations(cadata=own.certificate)

    async def probe() -> list[str]:
        contexts = [None, unverified(), old, unknown]
        return [await reached(own.host, own.port, context) for context in contexts]

    found, error = probed(parties, tmp_path, probe)
    assert found[:2] == ["closed", "closed"]
    assert {*found[2:]} <= {"no handshake", "refused", "closed"}
    assert "not connected after 0.6 s: party 1 (party1) at" in error
    assert pinned.minimum_version == ssl.TLSVersion.TLSv1_3


def test_a_party_that_claims_another_number_is_refused(parties: Parties, tmp_path: Path) -> None:
    """Its certificate says who it is, and mpyc believes the number that it sends."""
    own = parties.members[2]
    second = parties.contexts(2, tmp_path / "party2.key", None)[1][3]
    found, error = probed(parties, tmp_path, lambda: reached(own.host, own.port, second))
    assert found == "closed"
    assert error.startswith("party 2 (party2) claims the number of another party; nothing was shared")


@given(st.lists(st.integers(0, 2**300), max_size=9))
def test_numbers_are_read_as_they_were_sent(numbers: list[int]) -> None:
    sent = _PlainNumbers.dumps(np.array(numbers, dtype=object))
    assert _PlainNumbers.loads(sent).tolist() == numbers


def test_nothing_that_a_peer_sends_is_unpickled() -> None:
    """Neither an object that runs code when it is loaded, nor anything else that is no list of numbers."""
    load_mpyc()
    import mpyc.runtime

    assert mpyc.runtime.pickle is _PlainNumbers

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (sys.exit, (3,))

    evil = pickle.dumps(Evil())
    try:
        read = _PlainNumbers.loads(evil)
    except PartyError:
        read = None
    assert read is None or all(isinstance(number, int) for number in read)
    for broken in (b"", b"\x00\x00\x01", b"\x03\x00\x01"):
        with pytest.raises(PartyError, match="cannot be read"):
            _PlainNumbers.loads(broken)
    with pytest.raises(PartyError, match="only numbers"):
        _PlainNumbers.dumps({"a": 1})


def test_a_party_with_its_result_tells_the_others_who_failed_before_it_closes(parties: Parties, tmp_path: Path) -> None:
    """Those who still wait would take its own closing for the failure."""
    sent: list[tuple[int, int, bytes]] = []

    class Peer:
        def __init__(self, number: int) -> None:
            self.number, self.buffers, self.transport = number, {}, self

        def send(self, label: int, payload: bytes) -> None:
            sent.append((self.number, label, payload))

        def receive(self, label: int) -> Any:
            return asyncio.get_running_loop().create_future()  # it never says that it is done

        def close(self) -> None:
            sent.append((self.number, 0, b"closed"))

    async def run() -> None:
        links = Links(parties, 1, parties.contexts(1, tmp_path / "party1.key", None), timeout=20)
        for number in links.other_numbers:
            links.runtime.parties[number - 1].protocol = Peer(number)
        leaving = asyncio.ensure_future(links.__aexit__(None, None, None))
        await asyncio.sleep(0)
        links.lose("party 2 closed the connection", (2, "closed"))
        await asyncio.wait_for(leaving, 10)

    asyncio.run(run())
    *told, last = [(label, payload) for number, label, payload in sent if number == 3]
    assert last == (0, b"closed")
    assert [json.loads(payload) for label, payload in told if label == _STOPPED] == [{"party": 2, "fault": "closed"}]
