"""Who takes part: names, addresses and pinned certificates in a file that all parties hold alike."""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime
import hashlib
import os
import ssl
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.engines.formats import atomic_files
from shoal.errors import DataError, PartyError
from shoal.release.signatures import make_keys, read_private
from shoal.text import toml
from shoal.text.bounded import read_bounded

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.x509 import Certificate

MIN_PARTIES = 3  # of two parties, each learns the other's part by subtraction, and mpyc's shares of two hide nothing
MAX_PARTIES = 64  # for which numbers in shares have room
_YEARS = 5


@dataclass(frozen=True)
class Party:
    """One party: its name, the address where it listens, and its certificate."""

    name: str
    host: str
    port: int
    certificate: bytes  # DER

    @property
    def address(self) -> str:
        """Host and port as text."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the certificate."""
        return hashlib.sha256(self.certificate).hexdigest()

    @cached_property
    def parsed(self) -> Certificate:
        """The certificate as an object."""
        from cryptography import x509

        return x509.load_der_x509_certificate(self.certificate)

    @property
    def key(self) -> Ed25519PublicKey:
        """The public key of the certificate, which verifies signatures of plans."""
        key: Any = self.parsed.public_key()
        return key  # type: ignore[no-any-return]

    def as_toml(self) -> str:
        """Return the block that goes into the file of parties."""
        certificate = base64.b64encode(self.certificate).decode()
        fields = {"name": self.name, "address": self.address, "fingerprint": self.fingerprint}
        lines = [f"{field} = {toml.string(value)}" for field, value in (fields | {"certificate": certificate}).items()]
        return "\n".join(["[[party]]", *lines, ""])


def make_party(
    name: str | Path, address: str, *, password: str | None = None, force: bool = False
) -> tuple[Path, Path, Party]:
    """Write the key of a new party, NAME.key, and NAME.party.toml, the block that all parties put into one file.

    Parameters
    ----------
    name
        The path without the ending; its last part is the name of the party.
    address
        Where the party listens, as host:port.
    password
        Encrypts the private key in its file.
    force
        Replace existing files.

    Returns
    -------
    tuple of Path, Path, Party
        The files of the key and of the block, and the party.

    Raises
    ------
    DataError
        If the address is not host:port.
    OutputError
        If a file exists, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from shoal import smc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     key, block, party = smc.make_party(f"{folder}/north", "127.0.0.1:7001")
    ...     key.name, block.name, party.address
    ('north.key', 'north.party.toml', '127.0.0.1:7001')
    """
    host, port = _address(address, "the address")
    block = Path(f"{name}.party.toml")
    atomic_files.check_place(block, force)
    private, _ = make_keys(name, password=password, force=force)
    party = Party(Path(name).name, host, port, _certificate(read_private(private, password=password), Path(name).name))
    atomic_files.write_bytes(block, party.as_toml().encode(), force=force)
    return private, block, party


def _certificate(key: Ed25519PrivateKey, name: str) -> bytes:
    """Return a certificate that a party signs itself: others pin it, so no authority is needed."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509.oid import NameOID

    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64] or "party")])
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=365 * _YEARS))
        .sign(key, None)
    )
    return built.public_bytes(Encoding.DER)


def _address(text: str, where: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise DataError(f"{where}: {text!r} is not host:port", "write it as 192.0.2.10:7001")
    return host, int(port)


@dataclass(frozen=True)
class Parties:
    """All parties in the order of their file; the first has number 1."""

    members: tuple[Party, ...]

    @classmethod
    def load(cls, path: str | Path) -> Parties:
        """Read a file of parties and check every certificate against its fingerprint."""
        try:
            read = tomllib.loads(read_bounded(path).decode())
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: is not TOML ({error})") from None
        blocks = read.get("party")
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise DataError(f"{path}: contains no [[party]]", "join the .party.toml files of all parties in one file")
        return cls.checked(tuple(_party(block, f"{path}: party {i}") for i, block in enumerate(blocks, 1)), str(path))

    @classmethod
    def checked(cls, members: tuple[Party, ...], where: str = "parties") -> Parties:
        """Return the parties if there are enough of them and no two are the same."""
        if len(members) < MIN_PARTIES:
            raise DataError(
                f"{where}: {len(members)} parties; at least {MIN_PARTIES} are needed",
                "of two parties, each could compute the other's part of any result",
            )
        if len(members) > MAX_PARTIES:
            raise DataError(f"{where}: {len(members)} parties are more than {MAX_PARTIES}")
        for field in ("name", "address", "fingerprint"):
            values = [getattr(member, field) for member in members]
            if len({*values}) < len(values):
                raise DataError(f"{where}: two parties have the same {field}", "each party makes its own block")
        return cls(members)

    @property
    def threshold(self) -> int:
        """How many parties together still learn nothing but results: fewer than half."""
        return (len(self.members) - 1) // 2

    def named(self, number: int) -> str:
        """Return how a party is called in messages, counted from 1."""
        return f"party {number} ({self.members[number - 1].name})"

    def private_key(self, number: int, key: str | Path, password: str | None = None) -> Ed25519PrivateKey:
        """Read the private key of a party, if it belongs to the pinned certificate and that is valid today."""
        if not 1 <= number <= len(self.members):
            raise DataError(f"there is no party {number}; the file lists {len(self.members)}", "count from 1")
        private = read_private(key, password=password)
        if private.public_key() != self.members[number - 1].key:
            raise DataError(f"{key}: is not the key of {self.named(number)}", "is the number of the party right?")
        today = datetime.datetime.now(datetime.UTC)
        for i, member in enumerate(self.members, 1):
            if not member.parsed.not_valid_before_utc <= today <= member.parsed.not_valid_after_utc:
                raise PartyError(
                    f"the certificate of {self.named(i)} is not valid today", "let this party make a new key and block"
                )
        return private

    # ── TLS ──────────────────────────────────────────────────────────────────────────────────────────────────

    def contexts(
        self, number: int, key: str | Path, password: str | None
    ) -> tuple[ssl.SSLContext, dict[int, ssl.SSLContext]]:
        """Return the TLS settings of a party: as server for all others, and as client for each of them by number.

        Both sides show a certificate (TLS 1.3), and each accepts the pinned ones only; the system's authorities are not
        trusted.
        """
        this_party = self.members[number - 1]
        peers = {i: member for i, member in enumerate(self.members, 1) if i != number}
        with _file_of(this_party.certificate) as chain:
            server = _context(ssl.PROTOCOL_TLS_SERVER, chain, key, password)
            clients = {i: _context(ssl.PROTOCOL_TLS_CLIENT, chain, key, password) for i in peers}
        for i, member in peers.items():
            server.load_verify_locations(cadata=member.certificate)
            clients[i].load_verify_locations(cadata=member.certificate)
        return server, clients


def _context(protocol: int, chain: str, key: str | Path, password: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the certificate is pinned, its name proves nothing more
    context.verify_mode = ssl.CERT_REQUIRED
    # An empty password, so that OpenSSL never asks the terminal for one.
    context.load_cert_chain(chain, key, password=password or "")
    return context


@contextlib.contextmanager
def _file_of(certificate: bytes) -> Iterator[str]:
    """Write a certificate, which is public, to a file for the time that OpenSSL needs to read it."""
    handle, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(ssl.DER_cert_to_PEM_cert(certificate))
        yield name
    finally:
        Path(name).unlink(missing_ok=True)


def _party(block: dict[str, Any], where: str) -> Party:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    wanted = ("name", "address", "fingerprint", "certificate")
    if absent := [field for field in wanted if not isinstance(block.get(field), str) or not block[field]]:
        raise DataError(f"{where}: lacks {', '.join(absent)}", "each party makes its own block")
    if unknown := [field for field in block if field not in wanted]:
        raise DataError(f"{where}: unknown field {', '.join(map(repr, unknown))}", f"fields: {', '.join(wanted)}")
    host, port = _address(block["address"], where)
    try:
        party = Party(block["name"], host, port, base64.b64decode(block["certificate"], validate=True))
        usable = isinstance(party.parsed.public_key(), Ed25519PublicKey)
    except (binascii.Error, ValueError):
        usable = False
    if not usable:
        raise DataError(f"{where}: its certificate cannot be read", "copy the block as that party made it")
    if party.fingerprint != block["fingerprint"].lower().replace(":", ""):
        raise DataError(
            f"{where}: the certificate does not have the fingerprint beside it",
            "ask this party for its block again, and compare the fingerprint by telephone",
        )
    return party
