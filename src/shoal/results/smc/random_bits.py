"""Secret random bits, of which every comparison needs some hundred: products of signs that the parties draw.

Each of ``threshold + 1`` parties shares a random sign for every bit. Of these parties at least one is honest, so the
product is random to all who pool what they see. mpyc instead opens the squares of random numbers and takes roots modulo
a prime of some hundred bits, which take two thirds of the time of a regression where gmpy2 is not installed.
"""

from __future__ import annotations

import importlib
import secrets
from asyncio import Future
from typing import Any


def with_random_signs(runtime_class: Any) -> Any:
    """Return mpyc's runtime with random bits of this kind."""
    coroutine = importlib.import_module("mpyc.asyncoro").mpc_coro

    class SignedRuntime(runtime_class):  # type: ignore[misc]
        @coroutine  # type: ignore[untyped-decorator]
        async def random_bits(self, sftype: Any, n: int, signed: bool = False):  # type: ignore[no-untyped-def]
            """Return bits in shares as mpyc's own function does: 0 and 1, or -1 and 1 if ``signed``."""
            if issubclass(sftype, self.SecureObject):
                await self.returnType((sftype, True), n)
                field, shift = sftype.field, sftype.frac_length
            else:
                await self.returnType(Future)
                field, shift = sftype, 0
            senders = tuple(range(self.threshold + 1))
            drawn = [field(2 * secrets.randbits(1) - 1 if self.pid in senders else 0) for _ in range(n)]
            signs, *factors = await self.input(drawn, senders=senders) if n else [[]]
            for of_party in factors:
                signs = await self.schur_prod(signs, of_party)
            half = field(1) / 2
            bits = signs if signed else [(sign + 1) * half for sign in signs]
            return [bit << shift for bit in bits] if shift else bits

    return SignedRuntime
