"""Policies, hierarchies, certificates, receipts, keys, recodings and command lines that nobody should have written.

    python tests/fuzz/inputs.py --cases 50000 --seed 0        # --only 4711 runs one case again, with its traceback

Each case takes something valid and changes it: a value at some place, a slice of its text, an argument. What comes of
it must be a success or a ShoalError, never another exception; a command ends with 0, 1 or 2; and no message holds a
value of the table, all of which contain a mark.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import datetime as dt
import decimal
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from typer.testing import CliRunner

import shoal
from shoal.cli import commands, exits
from shoal.engines.local import LocalEngine
from shoal.errors import ShoalError
from shoal.policy import Policy
from shoal.release import replay
from shoal.release.receipt import receipt_of, write_receipt
from shoal.release.signatures import make_keys, read_private, sign

MARK = "Qzx"  # in every text of the table
NUMBERS = "7340"  # and every number begins so
PASSWORD = f"{MARK} secret"
SECONDS = 60  # of the processor that a case may take

# ── what is valid ───────────────────────────────────────────────────────────────────────────────────────────

RACES = [f"{MARK}asian", f"{MARK}black", f"{MARK}white"]
JOBS = [f"{MARK}cook", f"{MARK}clerk", f"{MARK}judge", f"{MARK}nurse"]
ILLS = [f"{MARK}flu", f"{MARK}hiv", f"{MARK}cold"]
HIERARCHY = "".join(f"{job};{MARK}{'court' if i > 1 else 'kitchen'};*\n" for i, job in enumerate(JOBS))


def table(n: int = 24, seed: int = 0) -> pa.Table:
    """People, each cell with a mark."""
    draw = random.Random(seed)
    rows = [
        {
            "name": f"{MARK}{i}",
            "age": f"{NUMBERS}{draw.randrange(10, 60)}",
            "zip": f"{MARK}{draw.randrange(4)}",
            "birth": f"19{draw.randrange(50, 53)}-0{draw.randrange(1, 4)}-11",
            "race": draw.choice(RACES),
            "job": draw.choice(JOBS),
            "ill": draw.choice(ILLS),
            "pay": f"{NUMBERS}{draw.randrange(100, 104)}",
            "note": f"{MARK}{draw.randrange(3)}",
        }
        for i in range(n)
    ]
    return pa.Table.from_pylist(rows)


COLUMNS: dict[str, Any] = {
    "name": {"role": "identifier"},
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 50]}, "weight": 2.0},
    "zip": {"role": "quasi", "hierarchy": {"mask": "right"}, "max_level": 3},
    "birth": {"role": "quasi", "hierarchy": {"dates": ["month", "year"]}},
    "race": {"role": "quasi", "hierarchy": {"tree": {"*": {f"{MARK}one": RACES[:2], f"{MARK}two": RACES[2:]}}}},
    "job": {"role": "quasi", "hierarchy": "job.csv", "uncovered": "suppress"},
    "ill": {"role": "sensitive", "hierarchy": {"tree": {"*": ILLS}}},
    "pay": {"role": "sensitive"},
    "note": {"role": "plain"},
}
REQUIRE: list[dict[str, Any]] = [
    {"model": "k-anonymity", "k": 2},
    {"model": "k-anonymity", "k": 2, "columns": ["age", "race"]},
    {"model": "distinct-l-diversity", "l": 2, "column": "ill"},
    {"model": "entropy-l-diversity", "l": 1.2, "column": "ill"},
    {"model": "recursive-l-diversity", "l": 2, "c": 4.0, "column": "pay"},
    {"model": "t-closeness", "t": 0.6, "column": "ill", "distance": "hierarchical"},
    {"model": "t-closeness", "t": 0.6, "column": "pay", "distance": "numeric"},
    {"model": "p-sensitive", "p": 2, "k": 2},
    {"model": "alpha-k-anonymity", "alpha": 0.8, "k": 2, "column": "ill"},
    {"model": "basic-beta-likeness", "beta": 3.0},
    {"model": "delta-disclosure", "delta": 2.0},
    {"model": "k-map", "k": 2, "population": "population.csv"},
    {"model": "linkage-risk", "max": 0.9},
]
RELEASE: list[dict[str, Any]] = [
    {"algorithm": "optimal", "objective": "loss", "max_suppression": 0.5, "seed": 3},
    {"algorithm": "mondrian", "dimension": "entropy", "suppressed": "keep", "max_suppression": 0.2},
    {"algorithm": "local", "objective": "entropy"},
    {"algorithm": "top_down", "label": "ill", "objective": "classification"},
    {"algorithm": "datafly", "nulls": "wildcard", "max_suppression": 0.3},
    {"algorithm": "k_minimal", "preference": "least-relative", "shuffle": False, "csv_formulas": "keep"},
    {"algorithm": "mdav", "entity": "name"},
    {"algorithm": "suppress_cells", "max_tuples": 10},
]


def fields(draw: random.Random) -> dict[str, Any]:
    """A valid policy, as plain values."""
    columns = copy.deepcopy(COLUMNS)
    for name in ("age", "zip", "birth", "race", "job"):
        if draw.random() < 0.4:
            columns[name] = {"role": "plain"}
    if not any(column["role"] == "quasi" for column in columns.values()):
        columns["age"] = copy.deepcopy(COLUMNS["age"])
    quasi = [name for name, column in columns.items() if column["role"] == "quasi"]
    require = [copy.deepcopy(model) for model in draw.sample(REQUIRE, draw.randrange(1, 3))]
    for model in require:
        if "columns" in model:
            model["columns"] = quasi[:2]
    policy: dict[str, Any] = {"columns": columns, "require": require}
    if draw.random() < 0.7:
        policy["release"] = copy.deepcopy(draw.choice(RELEASE))
    if draw.random() < 0.05:
        policy["preset"] = draw.choice(["wp216", "lecture-low", "cms-cell"])
    return policy


# ── what is changed ─────────────────────────────────────────────────────────────────────────────────────────


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


PLAIN: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 100, 2**31, 2**63, 10**400, 0.0, -0.5, 0.5, 1.0, 1.5, 1e308, 5e-324,
    float("inf"), float("-inf"), float("nan"), "", " ", "*", "inf", "nan", "\0", "é", "a" * 300, "=1", "quasi",
    "sensitive", "identifier", "plain", "suppress", "keep", "wildcard", "age", "ill", "nowhere", "job.csv", ".", "..",
    [], {}, [[]], nested(90), nested(2000), {"a": 1}, [1, 2], ["age"], ["age", "age"], {"tree": []},
    {"tree": {"*": []}}, {"flat": True}, {"flat": False}, {"mask": "left"}, {"intervals": []}, {"intervals": [0]},
    {"intervals": [5, 7]}, {"intervals": [1e-300]}, {"intervals": [10**300]}, {"intervals": [5], "top": -(10**300)},
    {"intervals": [5], "bottom": 0, "top": 0}, {"dates": []}, {"dates": ["year", "day"]},
    {"dates": ["year"], "order": "dmy"}, {"safe_harbor": "age"}, {"safe_harbor": "birth", "as_of": 2000},
    {"safe_harbor": "zip"}, {"safe_harbor": "date"}, {"tree": {"*": {"a": [True, 1, 1.5]}}},
]  # fmt: skip
PYTHON: list[Any] = [
    b"x", dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), decimal.Decimal("NaN"), decimal.Decimal("1e999"), set(),
    object(), 1j, "\ud800", (1, 2), Path("job.csv"), range(3), {1: 2}, {None: 1}, pa.scalar(1),
]  # fmt: skip
KEYS = [
    "role", "hierarchy", "k", "l", "t", "column", "after", "only", "cells", "min_level", "max_level", "weight", "x",
    "", "tree", "top", "origin", "nulls", "entity", "label", "time_budget", "folder", "level", "values", "age",
]  # fmt: skip
CELLS = ["range", "set", "mean", "median", "mode"]


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in plain values, from the outside in."""
    if len(above) > 100:
        return
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*above, key)
        yield from places(item, (*above, key))


def mutated(value: Any, draw: random.Random, pool: list[Any]) -> Any:
    """The same with one to three changes."""
    value = copy.deepcopy(value)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        found = list(places(value))
        if not found:
            return value
        *way, last = draw.choice(found)
        inner = value
        for step in way:
            inner = inner[step]
        match draw.randrange(6):
            case 0 | 1 | 2:
                inner[last] = copy.copy(draw.choice(pool))
            case 3:
                del inner[last]
            case 4 if isinstance(inner, dict):
                inner[draw.choice(KEYS)] = copy.copy(draw.choice([*pool, *CELLS]))
            case 4:
                inner.insert(last, copy.copy(inner[last]))
            case _ if isinstance(inner[last], int | float) and not isinstance(inner[last], bool):
                with contextlib.suppress(OverflowError):
                    inner[last] = inner[last] * draw.choice([-1, 0, 0.5, 2, 1e300, 10**30, 10**400])
            case _ if isinstance(inner[last], dict | list):
                inner[last] = draw.choice([lambda x: [x], lambda x: {"a": x}])(inner[last])
            case _:
                inner[last] = repr(inner[last])
    return value


TOKENS = [
    "[", "]", "[[", "{", "}", '"', "'", "=", "\n", ",", ".", "#", "\\", "\0", "\r", "\t", "é", "\ufeff", "-", "0",
    "1e999", "inf", "nan", "true", "9" * 5000, "[" * 3000, "{a=" * 1500, "2020-01-01", ";", "*", "\x7f", "\u2028",
    "null", "1979-05-27T07:32:00Z", '"""', "'''", "\\uD800", " ", "+1", "0x10", "1_0",
]  # fmt: skip


def mangled(text: str, draw: random.Random) -> str:
    """The text with one to four slices cut, doubled, moved or replaced."""
    for _ in range(draw.choice([1, 1, 2, 3, 4])):
        i = draw.randrange(len(text) + 1)
        j = min(len(text), i + draw.choice([0, 1, 1, 2, 5, 20, 100]))
        match draw.randrange(4):
            case 0:
                text = text[:i] + text[j:]
            case 1:
                text = text[:j] + text[i:]
            case 2:
                text = text[:i] + draw.choice(TOKENS) + text[j:]
            case _:
                at = draw.randrange(len(text) + 1)
                text = text[:at] + text[i:j] + text[at:]
    return text


# ── what is tried ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class World:
    """A folder with valid files, and what they lead to."""

    folder: Path
    rows: pa.Table = field(default_factory=table)

    def __post_init__(self) -> None:
        self.engine = LocalEngine.of(self.rows)
        (self.folder / "job.csv").write_text(HIERARCHY, encoding="utf-8")
        for name, rows in {"people.csv": self.rows, "population.csv": table(60, 1)}.items():
            lines = [",".join(rows.column_names), *(",".join(map(str, row.values())) for row in rows.to_pylist())]
            (self.folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.releases = []
        for seed in range(6):
            asked = fields(random.Random(seed))
            asked["require"] = [model for model in REQUIRE[seed : seed + 2] if "columns" not in model]
            asked["release"] = RELEASE[seed % 4] | {"max_suppression": 1.0, "time_budget": 0.2}
            with contextlib.suppress(ShoalError):
                self.releases.append(shoal.anonymize(self.rows, Policy.of(asked, self.folder)))
        assert len(self.releases) >= 3, "the policies above should have solutions"
        Policy.of({"columns": COLUMNS, "require": REQUIRE[:1]}).save(self.folder / "policy.toml")
        release = shoal.anonymize(self.rows, Policy.load(self.folder / "policy.toml"))
        proof = release.save(self.folder / "release.csv")
        make_keys(self.folder / "own")
        make_keys(self.folder / "locked", password=PASSWORD)
        (self.folder / "password.txt").write_text(PASSWORD + "\n", encoding="utf-8")
        self.key = read_private(self.folder / "own.key")
        (self.folder / "c.json").write_text(json.dumps(sign(proof, self.key)), encoding="utf-8")
        write_receipt(receipt_of(release, proof), self.folder / "receipt.json")
        replay.save_recoding(release, self.folder / "r.json")


def _use(policy: Policy, world: World, draw: random.Random) -> None:
    """What one does with a policy that was accepted."""
    assert Policy.parse(policy.to_toml(), world.folder) == policy
    assert hash(policy) == hash(Policy.parse(policy.to_toml()))
    if policy.release.time_budget is None or policy.release.time_budget > 0.2:
        options = policy.release.model_copy(update={"time_budget": 0.2})
        policy = policy.model_copy(update={"release": options})
    match draw.randrange(12):
        case 0 | 1:
            shoal.check(world.rows, policy)
        case 2:
            shoal.check(world.releases[0].table, policy, original=world.rows)
        case 3 | 4:
            release = shoal.anonymize(world.rows, policy)
            assert MARK + "0" not in "\n".join(map(str, release.findings))
            assert repr(release)
            shoal.verify_certificate(json.loads(json.dumps(release.certificate)), release.table)
        case 5:
            shoal.frontier(world.rows, policy, k=[2, 3])
        case _:
            for name in policy.quasi:
                world.engine.hierarchy(name, policy)


def a_policy(world: World, draw: random.Random) -> None:
    """Plain values, in which something was changed."""
    _use(Policy.of(mutated(fields(draw), draw, [*PLAIN, *PYTHON, *CELLS]), world.folder), world, draw)


def a_policy_text(world: World, draw: random.Random) -> None:
    """TOML, in which something was changed."""
    _use(Policy.parse(mangled(Policy.of(fields(draw)).to_toml(), draw), world.folder), world, draw)


def a_hierarchy(world: World, draw: random.Random) -> None:
    """A file, in which something was changed, or a tree of any shape."""
    column: dict[str, Any] = {"role": "quasi", "uncovered": draw.choice(["error", "suppress"])}
    if draw.random() < 0.7:
        text = HIERARCHY.replace(";", draw.choice(";;,\t"))
        content = mangled(text, draw).encode(draw.choice(["utf-8"] * 8 + ["utf-16", "latin-1"]), "replace")
        (world.folder / "mutated.csv").write_bytes(content)
        column["hierarchy"] = "mutated.csv"
    else:
        tree = {"*": {f"{MARK}a": JOBS[:2], f"{MARK}b": [JOBS[2], {f"{MARK}c": JOBS[3:]}]}}
        column["hierarchy"] = {"tree": mutated(tree, draw, PLAIN)}
    asked = {"columns": {**COLUMNS, "job": column}, "require": [{"model": "k-anonymity", "k": 2}]}
    policy = Policy.of(asked, world.folder)
    world.engine.hierarchy("job", policy)
    if draw.random() < 0.2:
        _use(policy, world, draw)


def a_certificate(world: World, draw: random.Random) -> None:
    """As JSON text or as values."""
    release = draw.choice(world.releases)
    claims = json.loads(json.dumps(release.certificate))
    if draw.random() < 0.3:
        path = world.folder / "mutated.json"
        path.write_text(mangled(json.dumps(claims), draw), encoding="utf-8", errors="replace")
        shoal.verify_certificate(path, release.table)
    else:
        found = shoal.verify_certificate(mutated(claims, draw, PLAIN), release.table)
        json.dumps(found.as_dict())


def a_signature(world: World, draw: random.Random) -> None:
    """Of a certificate that was changed before or after it was signed, or with keys that were."""
    release = draw.choice(world.releases)
    claims = json.loads(json.dumps(release.certificate))
    signed = sign(claims, world.key)
    changed = copy.deepcopy(signed)
    if draw.random() < 0.5:
        changed = mutated(signed, draw, PLAIN)
    elif draw.random() < 0.5:
        changed["signature"] = mutated(signed["signature"], draw, PLAIN)
    key = world.folder / "own.pub"
    if draw.random() < 0.5:
        key = world.folder / "mutated.pem"
        source = draw.choice(["own.pub", "own.key", "locked.key", "people.csv"])
        text = mangled((world.folder / source).read_text(encoding="utf-8"), draw)
        key.write_text(text, encoding="utf-8", errors="replace")
        if draw.random() < 0.5:
            read_private(key, password=draw.choice([None, "", PASSWORD, "x" * 2000, "é"]))
    found = shoal.verify_certificate(changed, release.table, key=key)
    (line,) = (line for line in found if line.name == "signature")
    assert not line.holds or without(changed) == without(signed), "a signature of something else was accepted"


def without(certificate: dict[str, Any]) -> str:
    """What was signed, in one form."""
    return json.dumps({name: part for name, part in certificate.items() if name != "signature"}, sort_keys=True)


def a_receipt(world: World, draw: random.Random) -> None:
    """As JSON text or as values, beside the release that it is of or another."""
    release = draw.choice(world.releases)
    claims, kept = json.loads(json.dumps(release.certificate)), json.loads(json.dumps(release.receipt))
    original = draw.choice([None, world.rows])
    if draw.random() < 0.4:
        path = world.folder / "mutated.json"
        path.write_text(mangled(json.dumps(kept), draw), encoding="utf-8", errors="replace")
        shoal.verify_certificate(claims, release.table, receipt=path, original=original)
    else:
        found = shoal.verify_certificate(claims, release.table, receipt=mutated(kept, draw, PLAIN), original=original)
        json.dumps(found.as_dict())


def a_recoding(world: World, draw: random.Random) -> None:
    """As JSON text or as values, for new rows."""
    kept = replay.described(draw.choice(world.releases))
    rows = world.rows if draw.random() < 0.5 else table(30, 2)
    if draw.random() < 0.3:
        path = world.folder / "mutated.json"
        path.write_text(mangled(json.dumps(kept), draw), encoding="utf-8", errors="replace")
        replay.replay(path, rows)
    else:
        kept = json.loads(json.dumps(kept))
        part = draw.choice(["policy", "columns", "tuples", "suppressed", None])
        if part in kept:
            kept[part] = mutated(kept[part], draw, PLAIN)
        else:
            kept = mutated(kept, draw, PLAIN)
        replay.replay(kept, rows)


COMMANDS = [
    ["inspect", "people.csv", "-o", "proposed.toml", "--force"],
    [
        "anonymize",
        "people.csv",
        "-p",
        "policy.toml",
        "-o",
        "out.csv",
        "--certificate",
        "c2.json",
        "--recoding",
        "r2.json",
        "--force",
    ],
    ["anonymize", "people.csv", "-p", "policy.toml", "--frontier", "k=2,3", "--json"],
    ["apply", "r.json", "people.csv", "-o", "out.csv", "--force"],
    ["check", "release.csv", "-p", "policy.toml", "--original", "people.csv"],
    ["check", "people.csv", "-p", "policy.toml", "--engine", "duckdb", "--memory", "1GB"],
    ["check", "people.csv", "-p", "policy.toml", "--previous", "release.csv", "--original", "people.csv"],
    ["attack", "release.csv", "-p", "policy.toml", "--original", "people.csv", "--knows", "age,zip", "--sample", "5"],
    ["explore", "people.csv", "-p", "policy.toml", "--sweep", "k=2", "--tolerable", "0.3"],
    ["verify", "c.json", "release.csv"],
    ["verify", "c.json", "release.csv", "--original", "people.csv", "--receipt", "receipt.json", "--key", "own.pub"],
    ["keys", "new", "--force"],
    ["keys", "new", "--password-file", "password.txt", "--force"],
    [
        "anonymize",
        "people.csv",
        "-p",
        "policy.toml",
        "-o",
        "out.csv",
        "--certificate",
        "c2.json",
        "--receipt",
        "kept.json",
        "--receipt-key",
        "receipt.json",
        "--sign",
        "locked.key",
        "--password-file",
        "password.txt",
        "--force",
    ],
    ["compare", "people.csv", "-p", "policy.toml", "--algorithms", "datafly,mondrian"],
]
ARGUMENTS = [
    "", " ", "-", "--", ".", "..", "/", "empty.csv", "empty.json", "nowhere", "people.csv",
    "policy.toml", "c.json", "r.json", "job.csv", "release.csv", "folder", "--json", "-q", "--force", "--engine",
    "local", "duckdb", "--memory", "1e999GB", "0", "-1", "9" * 400, "9" * 5000, "1e999", "nan", "inf", "k=1e999",
    "k=", "k", "=", "k=2,,3", "k=" + "9" * 5000, "l=2", "t=nan", "max_suppression=inf", "max_suppression=0,1",
    "--separator", ";", "ab", "\t", "é", "--encoding", "utf-16", "rot13", "latin-1", "--table", "--parquet", "t",
    "--sample", "--excludes", "--knows", "age", "age,age", "--id", "name", "--debug", "a" * 300 + ".csv",
    "people.csv/x", "file://x", "duckdb://nowhere", "duckdb://people.csv#t", "table:t", "\udcff.csv", "x.xlsx",
    "x.parquet", "x.gz", "--sensitivity", "low", "--report", "out.html", "--attacks", "--plot", "out.svg", "out.xyz",
    "--help", "--version", "1GB", "--utility", "--sign", "own.key", "locked.key", "own.pub", "--key", "--receipt",
    "receipt.json", "--receipt-key", "--password-file", "password.txt",
]  # fmt: skip


def a_command(world: World, draw: random.Random) -> None:
    """In this process, with arguments changed; raises what it told, or that its code is none that it may have."""
    arguments = list(draw.choice(COMMANDS))
    for _ in range(draw.choice([1, 1, 2, 3])):
        i = draw.randrange(1, len(arguments))
        match draw.randrange(4):
            case 0 if len(arguments) > 2:
                del arguments[i]
            case 1:
                arguments.insert(i, draw.choice(ARGUMENTS))
            case _:
                arguments[i] = draw.choice(ARGUMENTS)
    exits.debug.clear()
    done = CliRunner().invoke(commands.app, [a for a in arguments if a != "--debug"])
    if done.exit_code not in (0, 1, 2):
        os.environ["SHOAL_DEBUG"] = "1"
        try:
            again = CliRunner().invoke(commands.app, arguments)
        finally:
            del os.environ["SHOAL_DEBUG"]
        raise AssertionError(f"{arguments}: exit {done.exit_code}\n{again.stderr}")
    assert "Traceback" not in done.stderr, done.stderr
    if done.exit_code:
        raise ShoalError(done.stderr)


KINDS: dict[str, Callable[[World, random.Random], None]] = {
    "policy": a_policy,
    "policy text": a_policy_text,
    "hierarchy": a_hierarchy,
    "certificate": a_certificate,
    "signature": a_signature,
    "receipt": a_receipt,
    "recoding": a_recoding,
    "command": a_command,
}
WEIGHTS = [28, 18, 18, 13, 4, 5, 9, 5]


class TooLongError(BaseException):
    """A case goes on and on."""


def _alarm(*_: object) -> None:
    raise TooLongError(f"more than {SECONDS} s")


def shown(message: str) -> bool:
    """Whether a message holds a value of the table."""
    return MARK in message or NUMBERS in message


def attempt(number: int, seed: int, world: World) -> tuple[str, str, str]:
    """One case: its kind, what came of it, and what is wrong with that, or nothing."""
    draw = random.Random(f"{seed} {number}")
    (kind,) = draw.choices(list(KINDS), WEIGHTS)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        KINDS[kind](world, draw)
    except ShoalError as error:
        wrong = f"shows a value: {error}" if shown(str(error)) else ""
        return kind, "refused", wrong
    except (Exception, TooLongError):
        return kind, "failed", traceback.format_exc(limit=-6)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return kind, "accepted", ""


def run(cases: int, seed: int, *, first: int = 0, seconds: float = float("inf")) -> tuple[Counter[str], list[str]]:
    """Try so many cases, or as many as fit in the seconds; how often each outcome came, and what was wrong."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    before, here = signal.signal(signal.SIGVTALRM, _alarm), Path.cwd()
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # an overflow that nobody looked at
        os.chdir(folder)
        try:
            for name in ("empty.csv", "empty.json"):
                Path(name).touch()
            Path("folder").mkdir()
            world = World(Path(folder))
            for number in range(first, first + cases):
                kind, outcome, told = attempt(number, seed, world)
                counts[f"{kind}: {outcome}"] += 1
                if told:
                    wrong.append(f"case {number} of seed {seed}, {kind}:\n{told}")
                if time.monotonic() > end:
                    break
        finally:
            os.chdir(here)
            signal.signal(signal.SIGVTALRM, before)
    return counts, wrong


def main() -> int:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--only", type=int, help="run this case alone")
    given = parser.parse_args()
    if given.only is not None:
        counts, wrong = run(1, given.seed, first=given.only)
    else:
        counts, wrong = run(given.cases, given.seed, first=given.first, seconds=given.seconds)
    print("\n".join(wrong))
    for outcome, n in sorted(counts.items()):
        print(f"{n:8,} {outcome}")
    print(f"{counts.total():8,} cases, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
