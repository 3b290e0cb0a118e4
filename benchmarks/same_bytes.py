"""Does another version of shoal write the same releases, to the byte?

    git worktree add ../before v0.1.0
    python benchmarks/same_bytes.py ../before/src

Every algorithm makes a release of the same invented table, once with each version, and the files are compared. An
algorithm that only one version has, or that one of them refuses, is named.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

RELEASES = """
import hashlib, json, pathlib, sys, tempfile
import shoal
from shoal.demo.hospital import hospital
from shoal.search import SEARCHES

people = hospital(seed=3).slice(0, 600)
columns = {
    "name": {"role": "identifier"},
    "birth": {"role": "quasi", "hierarchy": {"dates": ["year", "decade"]}},
    "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
    "sex": {"role": "quasi"},
}
columns |= {name: {"role": "plain"} for name in people.column_names if name not in columns}
columns["disease"] = {"role": "sensitive"}
found = {}
with tempfile.TemporaryDirectory() as folder:
    for algorithm in SEARCHES:
        suppression = 1.0 if algorithm == "suppress_records" else 0.1
        policy = {
            "columns": columns,
            "require": [{"model": "k-anonymity", "k": 3}],
            "release": {"algorithm": algorithm, "max_suppression": suppression},
        }
        path = pathlib.Path(folder) / f"{algorithm}.csv"
        try:
            shoal.anonymize(people, policy).save(path)
            found[algorithm] = hashlib.sha256(path.read_bytes()).hexdigest()
        except shoal.ShoalError as error:
            found[algorithm] = type(error).__name__
print(json.dumps(found))
"""


def releases(sources: Path) -> dict[str, str]:
    """The digest of each algorithm's file, made by the version whose sources these are."""
    environment = os.environ | {"PYTHONPATH": str(sources.resolve())}
    finished = subprocess.run(
        [sys.executable, "-c", RELEASES], env=environment, capture_output=True, text=True, check=True
    )
    return dict(json.loads(finished.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("other", type=Path, help="the folder src of another version")
    other = releases(parser.parse_args().other)
    own_releases = releases(Path(__file__).resolve().parents[1] / "src")
    for algorithm in sorted(own_releases | other):
        before, after = other.get(algorithm, "not there"), own_releases.get(algorithm, "not there")
        print(f"{algorithm:<20} {'same' if before == after else 'DIFFERENT'}  {after[:16]}")
    if own_releases != other:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
