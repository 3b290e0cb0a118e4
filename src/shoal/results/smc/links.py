"""Connections between parties: mpyc's messages over mutual TLS with pinned certificates, on one address only.

On its own, mpyc listens on all interfaces, without TLS unless told so, believes the number that a peer tells of itself,
and unpickles what it receives at the end. Here a party listens on its own address, a peer is who its certificate
says, and nothing is ever unpickled.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import importlib
import json
import os
import ssl
import types
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from shoal.errors import PartyError, ShoalError
from shoal.results.smc.parties import Parties
from shoal.results.smc.random_bits import with_random_signs

SECURITY = 40  # bits of statistical security of comparisons; fields and TLS have at least 128
_HELLO, _SIGNED, _FINISHED, _STOPPED = (-(2**62) + i for i in range(4))  # labels that no program counter of mpyc has
_LARGEST_MESSAGE = 2**28
_MOMENT = 3.0  # seconds
_AGAIN = 0.1  # seconds until a party that does not listen yet is tried again
# Why a party stops because of another; told to all others, so that nobody blames one who only noticed first.
_FAULTS = {
    "closed": "closed the connection",
    "silent": "did not answer",
    "missing": "was not connected",
    "certificate": "does not have its pinned certificate",
    "rules": "did not follow the protocol",
}


def load_mpyc() -> Any:
    """Import mpyc without its side effects: it parses the command line, sets up logging and a first runtime."""
    before = os.environ.get("READTHEDOCS")
    os.environ["READTHEDOCS"] = "True"  # which is how mpyc lets its documentation be built without them
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of what mpyc uses, which nobody here can change
            runtime = importlib.import_module("mpyc.runtime")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "mpyc":
            raise
        raise ShoalError(
            "secure multiparty computation needs the package mpyc", "python -m pip install 'shoal[smc]'"
        ) from None
    finally:
        if before is None:
            del os.environ["READTHEDOCS"]
        else:
            os.environ["READTHEDOCS"] = before
    runtime.pickle = _PlainNumbers  # type: ignore[attr-defined]
    return runtime


class _PlainNumbers:
    """Stands in for pickle, which would let a peer run any code: arrays of whole numbers as bytes of equal length."""

    @staticmethod
    def dumps(numbers: Any) -> bytes:
        """Return the length of a number in two bytes, then the numbers."""
        if not isinstance(numbers, np.ndarray) or numbers.ndim != 1:
            raise PartyError("only numbers are sent to another party")
        whole = [int(number) for number in numbers]
        size = max(1, -(-max(whole, default=0).bit_length() // 8))
        return size.to_bytes(2, "little") + b"".join(number.to_bytes(size, "little") for number in whole)

    @staticmethod
    def loads(content: bytes) -> Any:
        """Return the numbers in a message, or raise an error: whatever it contains, nothing is run."""
        size = int.from_bytes(content[:2], "little")
        if not size or (len(content) - 2) % size:
            raise PartyError("a party sent numbers that cannot be read")
        read = (int.from_bytes(content[i : i + size], "little") for i in range(2, len(content), size))
        return np.fromiter(read, dtype=object, count=(len(content) - 2) // size)


class Links:
    """One party's connections, and mpyc's runtime that computes over them; used as an async context."""

    def __init__(
        self,
        parties: Parties,
        number: int,
        contexts: tuple[ssl.SSLContext, dict[int, ssl.SSLContext]],
        *,
        timeout: float,
        listen: tuple[str, int] | None = None,
    ) -> None:
        self.parties, self.number, self.timeout = parties, number, timeout
        self._server_tls, self._client_tls = contexts
        member = parties.members[number - 1]
        self._listen = listen or (member.host, member.port)
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.closing = False
        self.fault: tuple[int, str] | None = None  # a party, and one of the faults
        self.so_far = "nothing was shared"  # said when it stops
        self.active = 0.0  # when the last message came
        self.runtime = self._runtime()

    def _runtime(self) -> Any:
        module = load_mpyc()
        options = types.SimpleNamespace(
            threshold=self.parties.threshold,
            no_log=True,
            no_prss=False,
            no_async=False,
            no_barrier=True,
            sec_param=SECURITY,
            bit_length=64,
            mix32_64bit=False,
            ssl=True,
        )
        members = [module.Party(i, member.host, member.port) for i, member in enumerate(self.parties.members)]
        runtime = with_random_signs(module.Runtime)(self.number - 1, members, options)
        for peer in members:
            peer.protocol = None
        members[runtime.pid].protocol = runtime._loop.create_future()  # done when all others are connected
        runtime._loop.set_exception_handler(lambda loop, context: None)  # messages may quote values
        _set_runtime(runtime)
        return runtime

    @property
    def other_numbers(self) -> list[int]:
        """The numbers of the other parties."""
        return [i for i in range(1, len(self.parties.members) + 1) if i != self.number]

    def named(self, numbers: list[int]) -> str:
        """Return how parties are called in messages."""
        return ", ".join(self.parties.named(i) for i in numbers)

    def link(self, number: int) -> Any:
        """Return the connection to a party."""
        return self.runtime.parties[number - 1].protocol

    def missing(self) -> list[int]:
        """Return the parties that are not connected."""
        return [i for i in self.other_numbers if self.link(i) is None]

    # ── opened and closed ────────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Links:
        loop = asyncio.get_running_loop()
        factory = _link_class()
        server = None
        tasks: list[asyncio.Task[None]] = []
        try:
            if self.number > 1:
                server = await loop.create_server(
                    lambda: factory(self, None), *self._listen, ssl=self._server_tls, ssl_handshake_timeout=20
                )
            tasks = [asyncio.ensure_future(self._connect(i, factory)) for i in self.other_numbers if i > self.number]
            ready = self.runtime.parties[self.runtime.pid].protocol
            await self._race(ready, self._not_there)
            return self
        except OSError as error:
            host, port = self._listen
            raise PartyError(
                f"cannot listen on {host}:{port}: {os.strerror(error.errno or 0)}",
                "is it an address of this computer, and is the port free?",
                option="--listen 0.0.0.0:7001 behind a router",
            ) from None
        except BaseException as error:
            await self._linger(error)
            raise
        finally:
            for task in tasks:
                task.cancel()
            if server is not None:
                server.close()

    async def _connect(self, number: int, factory: Callable[..., Any]) -> None:
        """Try until the party listens; a wrong certificate ends it at once."""
        peer = self.parties.members[number - 1]
        while True:
            try:
                await asyncio.get_running_loop().create_connection(
                    lambda: factory(self, number - 1), peer.host, peer.port, ssl=self._client_tls[number]
                )
                return
            except ssl.SSLCertVerificationError:
                self.lose(
                    f"{peer.address} does not have the pinned certificate of {self.parties.named(number)}",
                    (number, "certificate"),
                )
                return
            except OSError:
                await asyncio.sleep(_AGAIN)

    def _not_there(self) -> PartyError:
        numbers = self.missing()
        self.fault = (numbers[0], "missing") if numbers else None
        absent = "; ".join(f"{self.parties.named(i)} at {self.parties.members[i - 1].address}" for i in numbers)
        return PartyError(
            f"not connected after {self.timeout:g} s: {absent}; nothing was shared",
            "all parties must run at the same time, with the same file of parties",
            option="--timeout",
        )

    def lose(self, reason: str, fault: tuple[int, str]) -> None:
        """Record why the computation cannot go on."""
        if not self.lost.done() and not self.closing:
            self.fault = fault
            self.lost.set_result(reason)

    def stopped(self, number: int, message: bytes) -> None:
        """A party says that it stops because of another one."""
        try:
            read = json.loads(message)
            culprit, fault = int(read["party"]), _FAULTS[read["fault"]]
            named = self.parties.named(culprit) if culprit > 0 else ""
        except (ValueError, LookupError, TypeError):
            named = fault = ""
        if not named or culprit == self.number:
            self.lose(f"{self.parties.named(number)} closed the connection", (number, "closed"))
        else:
            self.lose(f"{named} {fault}, says {self.parties.named(number)}", (culprit, read["fault"]))

    async def _race(
        self, awaited: Awaitable[Any], late: Callable[[], PartyError], *, while_active: bool = False
    ) -> Any:
        """Wait for something, for a lost party or for the timeout, whichever comes first."""
        goal = asyncio.ensure_future(awaited)
        loop = asyncio.get_running_loop()
        end = loop.time() + self.timeout
        completed: set[Any] = set()
        while not completed and loop.time() < end:
            completed, _ = await asyncio.wait(
                {goal, self.lost}, timeout=end - loop.time(), return_when=asyncio.FIRST_COMPLETED
            )
            if while_active:
                end = max(end, self.active + self.timeout)
        if goal in completed:
            return goal.result()
        goal.cancel()
        if self.lost in completed:
            raise PartyError(f"{self.lost.result()}; {self.so_far}", "ask that party, and run it again")
        raise late()

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Wait until all parties have their result, then close; after an error, close at once."""
        if error is None:
            self.timeout = 2 * self.timeout + _MOMENT  # others may still wait for one that is slow, and must tell of it
            with contextlib.suppress(PartyError):
                await self.exchange(_FINISHED, {})
                self.fault = None  # all have their result; otherwise those without one are told who failed
        await self._linger(error)

    async def _linger(self, error: BaseException | None) -> None:
        """Close; after an error that all parties will find, wait a moment until each has found it by itself."""
        if self.fault is not None:
            message = json.dumps({"party": self.fault[0], "fault": self.fault[1]}).encode()
            for number in self.other_numbers:
                if self.link(number) is not None:
                    self.link(number).send(_STOPPED, message)
        elif isinstance(error, ShoalError):
            self.timeout = min(self.timeout, _MOMENT)
            with contextlib.suppress(PartyError):
                await self.exchange(_FINISHED, {})
        self._drop()
        await asyncio.sleep(0)

    def _drop(self) -> None:
        """Close connections, and leave no share and no key behind in mpyc's caches."""
        self.closing = True
        for number in self.other_numbers:
            link = self.link(number)
            if link is not None:
                link.transport.close()
                link.buffers.clear()
        self.runtime._prss_keys = {}
        type(self.runtime).prfs.cache_clear()
        _set_runtime(None)

    # ── messages outside of mpyc's protocols ─────────────────────────────────────────────────────────────────

    async def exchange(self, label: int, message: dict[str, Any]) -> dict[int, dict[str, Any]]:
        """Send the same to every party and return what each has sent."""
        payload = json.dumps(message).encode()
        for number in self.other_numbers:
            if self.link(number) is not None:
                self.link(number).send(label, payload)
        received: dict[int, dict[str, Any]] = {}
        for number in self.other_numbers:
            if self.link(number) is not None:
                received[number] = await self._received(number, label)
        return received

    async def _received(self, number: int, label: int) -> dict[str, Any]:
        link = self.link(number)
        payload = link.receive(label)
        if isinstance(payload, asyncio.Future):
            late = PartyError(
                f"{self.parties.named(number)} did not answer within {self.timeout:g} s; {self.so_far}",
                "is it still running?",
                option="--timeout",
            )
            payload = await self._race(payload, lambda: self._silent(number, late))
        try:
            read = json.loads(payload)
        except ValueError:
            read = None
        if not isinstance(read, dict):
            raise PartyError(f"{self.parties.named(number)} sent a message that cannot be read")
        return read

    def _silent(self, number: int, error: PartyError) -> PartyError:
        self.fault = number, "silent"
        return error

    async def agree(self, message: dict[str, Any]) -> dict[int, dict[str, Any]]:
        """Exchange plans, before anything else is sent."""
        return await self.exchange(_HELLO, message)

    async def signatures(self, signature: bytes) -> dict[int, bytes]:
        """Exchange the signatures of the plan."""
        received = await self.exchange(_SIGNED, {"signature": signature.hex()})
        try:
            return {number: bytes.fromhex(message["signature"]) for number, message in received.items()}
        except (KeyError, TypeError, ValueError):
            raise PartyError("a party sent a signature that cannot be read") from None

    async def computed(self, work: Awaitable[Any]) -> Any:
        """Wait for a computation; name the parties that it waits for if it takes too long."""

        def late() -> PartyError:
            slow = [
                i
                for i in self.other_numbers
                if any(isinstance(m, asyncio.Future) for m in self.link(i).buffers.values())
            ]
            self.fault = (slow or self.other_numbers)[0], "silent"
            return PartyError(
                f"{self.named(slow or self.other_numbers)} did not answer within {self.timeout:g} s; {self.so_far}",
                "allow more time",
                option="--timeout",
            )

        return await self._race(work, late, while_active=True)


def _set_runtime(runtime: Any) -> None:
    """Tell mpyc's modules which runtime computes."""
    for name in ("sectypes", "asyncoro", "mpctools", "seclists", "secpols", "secgroups", "random", "statistics"):
        importlib.import_module(f"mpyc.{name}").runtime = runtime  # type: ignore[attr-defined]
    if runtime is None:
        gc.collect()


def _link_class() -> Callable[..., Any]:
    """Return the connection to one party, a subclass of mpyc's."""
    exchanger: Any = importlib.import_module("mpyc.asyncoro").MessageExchanger

    class Link(exchanger):  # type: ignore[misc]
        """A connection whose peer is who its certificate says."""

        def __init__(self, links: Links, peer_pid: int | None) -> None:
            super().__init__(links.runtime, peer_pid)
            self.links = links
            self.certified = -1

        def connection_made(self, transport: Any) -> None:
            certificate = transport.get_extra_info("ssl_object").getpeercert(binary_form=True) or b""
            prints = [member.fingerprint for member in self.links.parties.members]
            shown_print = hashlib.sha256(certificate).hexdigest()
            self.certified = prints.index(shown_print) if shown_print in prints else -1
            pinned = self.certified >= 0 and self.certified != self.links.number - 1
            if not pinned or (self.peer_pid is not None and self.peer_pid != self.certified):
                transport.abort()
                return
            super().connection_made(transport)

        def data_received(self, data: bytes) -> None:
            if len(self.bytes) + len(data) > _LARGEST_MESSAGE:
                self._refuse("sent a message that is too large")
                return
            if self.peer_pid is None and len(self.bytes) + len(data) >= 2:
                claimed = int.from_bytes((bytes(self.bytes) + data)[:2], "little")
                if claimed != self.certified:
                    self._refuse("claims the number of another party")
                    return
                if self.links.link(claimed + 1) is not None:
                    self._refuse("connected twice")
                    return
            self.links.active = asyncio.get_running_loop().time()
            super().data_received(data)
            if isinstance(size := self.buffers.get(_STOPPED), bytes):
                self.links.stopped(self.certified + 1, size)

        def _refuse(self, reason: str) -> None:
            self.transport.abort()
            number = self.certified + 1
            self.links.lose(f"{self.links.parties.named(number)} {reason}", (number, "rules"))

        def connection_lost(self, exc: Exception | None) -> None:
            if self.peer_pid is None or self.certified < 0:
                return
            hint = " (does its file of parties have your certificate?)" if isinstance(exc, ssl.SSLError) else ""
            number = self.certified + 1
            self.links.lose(f"{self.links.parties.named(number)} closed the connection{hint}", (number, "closed"))

    return Link
