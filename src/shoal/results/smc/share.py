"""One party's run: read the rows, connect, sign the plan, compute in shares, open the result."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.engines.base import Engine
from shoal.engines.data import Data
from shoal.errors import InfeasibleError, PartyError
from shoal.results.smc import intersection, protocols
from shoal.results.smc.links import Links, load_mpyc
from shoal.results.smc.local import LocalRows
from shoal.results.smc.parties import Parties, _address
from shoal.results.smc.plan import SharePlan, fraction_in

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PROTOCOL = 4  # of messages and computations; parties with another one do not understand each other

_ALONE = threading.Lock()  # mpyc has one runtime for a process

PROMISE = (
    "No party learns more than this result and what follows from it and its own rows, if all follow the protocol "
    "(semi-honest) and fewer than half of them pool what they see (honest majority)."
)


@dataclass(frozen=True)
class SharedResult:
    """What all parties learned together, the plan that they signed, and their signatures."""

    plan: SharePlan
    figures: Mapping[str, Any]
    noise: Mapping[str, float]  # the standard deviation of the noise in each opened figure
    parties: tuple[str, ...]
    signatures: Mapping[str, str] = field(repr=False)
    session: Mapping[str, Any] = field(repr=False)

    @property
    def notes(self) -> list[str]:
        """What is promised, against whom, and what is not."""
        notes = [PROMISE]
        if self.plan.epsilon is None:
            notes.append(
                "The result itself is exact and can reveal a person; noise (differential privacy) would prevent that."
            )
        else:
            honest = self.plan.honest(len(self.parties))
            surplus = Fraction(len(self.parties), honest)
            notes.append(
                f"The result is {self.plan.epsilon}-differentially private for a person with at most "
                f"{self.plan.rows_per_person} row{'s' * (self.plan.rows_per_person > 1)} in all tables, also against "
                f"{len(self.parties) - honest} parties that reveal their parts of the noise to each other. "
                f"Its variance is {float(surplus):.3g} times that of the least noise. Each run spends its epsilon anew."
            )
        if self.plan.intersection is not None and self.figures[f"intersection of {self.plan.intersection}"] is None:
            notes.append(
                f"All parties have at least 1 and fewer than {self.plan.min_rows_opened} identifiers in common. "
                "How many was not opened, since that would be about single people."
            )
        return notes

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON represents it."""
        return {
            "result": dict(self.figures),
            "noise": dict(self.noise),
            "plan": self.plan.as_dict(),
            "plan_digest": self.plan.digest,
            "opened": list(self.plan.opened),
            "parties": list(self.parties),
            "session": dict(self.session),
            "signatures": dict(self.signatures),
            "notes": self.notes,
        }


def share(
    data: Data | Engine | None,
    plan: SharePlan,
    *,
    party: int,
    parties: Parties | str | Path,
    key: str | Path,
    password: str | None = None,
    timeout: float = 60,
    listen: str | None = None,
) -> SharedResult:
    """Take part in a joint computation as one party; every party calls this at the same time with the same plan.

    Parameters
    ----------
    data
        The rows of this party; a party without rows takes part with an empty table or None.
    plan
        What is computed, the same at all parties.
    party
        The number of this party in the file of parties, counted from 1.
    parties
        The parties, or their file.
    key
        The file of the private key of this party.
    password
        The password of that file, if it has one.
    timeout
        How many seconds to wait for others.
    listen
        The address to bind to instead of the one in the file, for a computer behind a router.

    Returns
    -------
    SharedResult
        What all parties learned, the plan, and the signatures of all parties.

    Raises
    ------
    PartyError
        If a party is absent, has another plan, or does not follow the protocol.
    DataError
        If the rows do not fit the plan.
    InfeasibleError
        If a figure would be about too few rows.

    Examples
    --------
    >>> from shoal import smc
    >>> plan = smc.SharePlan(mean=("age",), skip_missing=True)
    >>> smc.share("north.csv", plan, party=1, parties="parties.toml", key="north.key")  # doctest: +SKIP
    """
    load_mpyc()
    all_parties = parties if isinstance(parties, Parties) else Parties.load(parties)
    private = all_parties.private_key(party, key, password)
    plan.honest(len(all_parties.members))  # raises
    rows = LocalRows.counted(data, plan)
    require_fine(rows)
    # Noise is drawn before anybody is connected: how long it takes depends on how large it is.
    private_key = own_figures(rows, len(all_parties.members))
    contexts = all_parties.contexts(party, key, password)
    bound = None if listen is None else _address(listen, "the address to listen on")

    async def run() -> SharedResult:
        async with Links(all_parties, party, contexts, timeout=timeout, listen=bound) as links:
            session, signatures = await _agreed(links, plan, private)
            links.so_far = "nothing was opened"
            result = await links.computed(_computed(links, rows, private_key, session))
            names = tuple(member.name for member in all_parties.members)
            figures, noise = result
            return SharedResult(plan, figures, noise, names, signatures, session)

    if not _ALONE.acquire(blocking=False):
        raise PartyError("this process takes part in another joint computation", "use one process for each")
    try:
        return asyncio.run(run())
    except RuntimeError as error:
        if "Event loop stopped" not in str(error):
            raise
        raise PartyError("the computation failed on shares that do not fit together") from None
    finally:
        _ALONE.release()


def require_fine(rows: LocalRows) -> None:
    """Compute all local figures once, so that errors in the rows come before anything is sent."""
    plan = rows.plan
    for name in dict.fromkeys((*plan.sum, *plan.mean, *plan.variance)):
        rows.power(name, 2)
    for name in (*plan.minimum, *plan.maximum, *(name for name, _ in plan.quantile)):
        rows.below(name)
    for name in plan.histogram:
        rows.cells(name)
    for names in plan.regression:
        rows.moments(names)
    if plan.intersection is not None:
        _ = rows.identifiers


async def _agreed(links: Links, plan: SharePlan, private: Ed25519PrivateKey) -> tuple[dict[str, Any], dict[str, str]]:
    """Compare plans and sign; raise an error that names the parties with another plan, or without a valid signature."""
    members = links.parties.members
    own_hash = {
        "protocol": PROTOCOL,
        "mpyc": load_mpyc().mpyc.__version__,
        "parties": [[member.name, member.fingerprint] for member in members],
        "plan": plan.as_dict(),
        "nonce": secrets.token_hex(32),
    }
    received = await links.agree(own_hash)
    disagreeing = []
    for number, other in received.items():
        differing = [name for name in ("protocol", "mpyc", "parties") if other.get(name) != own_hash[name]]
        theirs = other.get("plan")
        differing += plan.differences(theirs) if isinstance(theirs, dict) else ["plan"]
        if differing:
            disagreeing.append(f"{links.parties.named(number)} has another {', '.join(differing)}")
    if disagreeing:
        raise PartyError(
            f"the parties disagree: {'; '.join(disagreeing)}; nothing was shared",
            "compare the digest of the plan, and run it again with the same options everywhere",
            option="--plan prints it",
        )
    nonces = {number: str(other.get("nonce")) for number, other in received.items()} | {links.number: own_hash["nonce"]}
    session = {"parties": own_hash["parties"], "nonces": [nonces[number] for number in sorted(nonces)]}
    message = plan.canonical(session)
    signed = await links.signatures(private.sign(message)) | {links.number: private.sign(message)}
    for number, signature in signed.items():
        if not _valid(members[number - 1].key, signature, message):
            raise PartyError(f"{links.parties.named(number)} did not sign this plan; nothing was shared")
    return session, {members[number - 1].name: signed[number].hex() for number in sorted(signed)}


def _valid(key: Any, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


# ── computed ────────────────────────────────────────────────────────────────────────────────────────────────────


Figures = dict[tuple[str, str], Any]  # by kind and column


def own_figures(rows: LocalRows, n_parties: int) -> Figures:
    """Return what a party adds to each figure: its own rows, and its part of the noise."""
    plan = rows.plan
    figures: Figures = {("rows", ""): rows.n_rows} if plan.count else {}
    for name in dict.fromkeys((*plan.sum, *plan.mean, *plan.variance)):
        figures["sum", name] = rows.power(name, 1)
    for name in dict.fromkeys((*plan.mean, *plan.variance)):
        figures["count", name] = rows.count(name)
    for name in plan.variance:
        figures["square", name] = rows.power(name, 2)
    for name in plan.histogram:
        figures |= {(f"cell {i}", name): n for i, n in enumerate(rows.cells(name))}
    if plan.intersection is not None:
        figures["common", ""] = 0  # the number itself is computed in shares
    for figure, number in figures.items():
        noisy = plan.noise_of(figure[0], figure[1], n_parties)
        if noisy is not None:
            law, unit = noisy
            figures[figure] = (number // unit + law.draw()) * unit
    return figures


async def _computed(
    links: Links, rows: LocalRows, own_numbers: Figures, session: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Compute everything in the plan; the order is the same at every party."""
    runtime, plan = links.runtime, rows.plan
    if plan.min_rows_opened > 1:
        identifiers = [] if plan.intersection is None else [len(rows.identifiers)]
        if not await protocols.enough(runtime, rows.sizes(), identifiers, plan.min_rows_opened):
            raise InfeasibleError(
                f"a figure would be about fewer than {plan.min_rows_opened} rows, or so few without those of parties "
                "that may pool what they see; nothing else was opened",
                "compute over more rows, leave out columns with missing values, or agree on a smaller number",
                option="--at-least",
            )
    common = own_numbers.get(("common", ""))
    # The others can open a figure without this party as soon as they have its shares.
    links.so_far = "some figures may have been opened, and none is shown"
    parts = await _sums(runtime, {figure: number for figure, number in own_numbers.items() if figure[0] != "common"})
    if common is not None:
        key = hashlib.sha256("".join(session["nonces"]).encode()).digest()
        parts["common", ""] = await intersection.common(runtime, rows.digests(key), plan.at_most, common)
    await runtime.gather([*parts.values()])
    opened, noise = await _open(runtime, rows, parts)
    figures = _additive(plan, opened)
    ranks: list[tuple[str, str, Fraction | None]] = [(f"minimum of {name}", name, None) for name in plan.minimum]
    ranks += [(f"maximum of {name}", name, Fraction(1)) for name in plan.maximum]
    ranks += [(f"quantile {q} of {name}", name, fraction_in(q, "quantile")) for name, q in plan.quantile]
    if ranks:
        numbers = await protocols.order_statistics(runtime, rows, [(name, fraction) for _, name, fraction in ranks])
        for (label, name, _), number in zip(ranks, numbers, strict=True):
            figures[label] = None if number is None else _plain(Fraction(number, plan.scale(name)))
    for names in plan.regression:
        solved = await protocols.coefficients(runtime, rows, names)
        labels = ("intercept", *names[1:])
        named = None if solved is None else {label: float(x) for label, x in zip(labels, solved, strict=True)}
        figures[f"regression of {names[0]} on {', '.join(names[1:])}"] = named
    if plan.intersection is not None:
        figures[f"intersection of {plan.intersection}"] = opened.get(("common", ""))
    return figures, noise


async def _sums(runtime: Any, own_numbers: Figures) -> Figures:
    """Return the counts and sums over all parties in shares."""
    shared = await protocols.sums_in_shares(runtime, list(own_numbers.values()))
    return dict(zip(own_numbers, shared, strict=True))


async def _open(runtime: Any, rows: LocalRows, parts: Figures) -> tuple[dict[tuple[str, str], int], dict[str, float]]:
    """Open what the plan lists; sums and squares that serve only an exact variance stay in shares."""
    plan, n = rows.plan, len(runtime.parties)
    wanted = dict(parts)
    common = wanted.pop(("common", ""), None)
    if plan.epsilon is None:
        for name in plan.variance:
            wanted["deviations", name] = protocols.deviations(
                runtime, parts["count", name], parts["sum", name], wanted.pop(("square", name))
            )
            if name not in (*plan.sum, *plan.mean):
                del wanted["sum", name]
    opened = dict(zip(wanted, await protocols.opened_to_all(runtime, list(wanted.values())), strict=True))
    if common is not None:
        size = await intersection.opened_size(runtime, common, 1 if plan.epsilon else plan.min_rows_opened)
        if size is not None:
            opened["common", ""] = size
    noise = {}
    for kind, name in opened:
        noisy = plan.noise_of(kind, name, n)
        if noisy is not None:
            law, unit = noisy
            scale = plan.scale(name) ** {"sum": 1, "square": 2}.get(kind, 0)
            noise[f"{kind} {name}".strip()] = law.standard_deviation(n) * unit / scale
    return opened, noise


def _additive(plan: SharePlan, opened: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """Return counts, sums, means, variances and histograms from the opened numbers."""
    figures: dict[str, Any] = {"count": opened["rows", ""]} if plan.count else {}
    for name in plan.sum:
        figures[f"sum of {name}"] = _plain(Fraction(opened["sum", name], plan.scale(name)))
    for name in plan.mean:
        n = opened["count", name]
        mean = Fraction(opened["sum", name], n * plan.scale(name)) if n > 0 else None
        figures[f"mean of {name}"] = None if mean is None else float(mean)
        figures[f"rows with {name}"] = n
    for name in plan.variance:
        n = opened["count", name]
        if plan.epsilon is None:
            spread = opened["deviations", name]
        else:
            spread = max(0, n * opened["square", name] - opened["sum", name] ** 2)
        variance = Fraction(spread, n * (n - 1) * plan.scale(name) ** 2) if n > 1 else None
        figures[f"variance of {name}"] = None if variance is None else float(variance)
        figures[f"rows with {name}"] = n
    for name in plan.histogram:
        figures[f"histogram of {name}"] = {label: opened[f"cell {i}", name] for i, label in enumerate(plan.cells(name))}
    return figures


def _plain(number: Fraction) -> int | float:
    """Return a whole number as such, so that sums of whole numbers are exact however large."""
    return int(number) if number.denominator == 1 else float(number)
