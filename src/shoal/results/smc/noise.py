"""Discrete Laplace noise in parts: each party draws a part, and only the sum over enough parties has the full law.

C. Dwork et al., "Our data, ourselves: privacy via distributed noise generation", EUROCRYPT 2006; S. Goryczka and
L. Xiong, "A comprehensive comparison of multiparty secure additions with differential privacy", TDSC 14(5), 2017.

The discrete Laplace law with ratio ``a`` gives each integer ``x`` the probability ``(1 - a) / (1 + a) · a^|x|``. It is
the difference of two geometric variables, and a geometric variable is the sum of ``h`` independent Pólya variables
(negative binomial with exponent ``1/h``). So if each party adds the difference of two Pólya draws, the noise of any
``h`` parties is discrete Laplace.

Draws are exact: with ``a = 1 - c^h`` for a rational ``c``, every probability is rational; uniform bits come from
``secrets`` and are extended until they fall into one cell of the distribution function for certain. No floating-point
number is involved, whose gaps would betray the secret (I. Mironov, CCS 2012).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import cached_property

BITS = 128  # of the first comparison; a draw that they do not decide takes as many again
_ROOT_BITS = 96

Bits = Callable[[int], int]  # so many random bits as an integer


@dataclass(frozen=True)
class PolyaNoise:
    """Noise of which ``honest`` parties together add a discrete Laplace variable of at least the scale asked for.

    ``epsilon`` is what one figure may spend, ``sensitivity`` the most by which one person changes it, in its units.
    """

    epsilon: Fraction
    sensitivity: int
    honest: int

    @cached_property
    def root(self) -> Fraction:
        """The rational ``c`` with ``1 - c^honest ≥ exp(-epsilon / sensitivity)``: the noise is never too small."""
        with localcontext() as context:
            context.prec = 120
            rate = Decimal(self.epsilon.numerator) / Decimal(self.epsilon.denominator) / self.sensitivity
            exact = (1 - (-rate).exp()) ** (Decimal(1) / self.honest)
            context.rounding = ROUND_FLOOR
            down = int((exact * (1 - Decimal(10) ** -60)) * 2**_ROOT_BITS)
        return Fraction(down, 2**_ROOT_BITS)

    @cached_property
    def ratio(self) -> Fraction:
        """The ratio ``a`` of the discrete Laplace law."""
        return 1 - self.root**self.honest

    def standard_deviation(self, parties: int) -> float:
        """The standard deviation of the noise that ``parties`` parties add together."""
        variance = 2 * self.ratio / (1 - self.ratio) ** 2 * Fraction(parties, self.honest)
        return math.sqrt(variance)

    def draw(self, bits: Bits = secrets.randbits) -> int:
        """Return the part of one party."""
        return self._polya(bits) - self._polya(bits)

    def _polya(self, bits: Bits) -> int:
        """Invert the distribution function, with bounds on it instead of rounded values."""
        c, h = self.root, self.honest
        a = self.ratio
        drawn, size = bits(BITS), BITS
        while True:
            scale = 1 << size
            # low and high bound the probability of k, below and above the distribution function up to k - 1.
            low, high = (c.numerator * scale) // c.denominator, -((-c.numerator * scale) // c.denominator)
            below = above = 0
            k = 0
            while True:
                below, above = below + low, above + high
                if drawn + 1 <= below:
                    return k
                if drawn < above:  # more bits are needed to tell whether it is k
                    break
                k += 1
                up, down = a.numerator * ((k - 1) * h + 1), a.denominator * k * h
                low, high = low * up // down, -(-high * up // down)
            drawn, size = (drawn << BITS) | bits(BITS), size + BITS
