"""The report of a release whose rows stay in their engine: it needs their frequency table, and no more."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import shoal
from benches import Bench
from contract import TASKS
from shoal.cli.commands import app
from shoal.report.summary import summary

TASK = TASKS["nulls"]
PEOPLE = pa.Table.from_pandas(TASK.frame, preserve_index=False)
# Results of attacks in the certificate.
ATTACKS = re.compile(r"^ +&#34;attacks&#34;: .*?(?=^ +&#34;findings&#34;: )", re.DOTALL | re.MULTILINE)
DIGEST = re.compile(r"(?<=hmac_sha256&#34;: &#34;)[0-9a-f]{64}")  # of the input; its key is drawn for each release


@pytest.mark.parametrize("algorithm", ["optimal", "mondrian_relaxed"])
def test_it_tells_what_it_tells_of_rows_in_memory(database: Bench, algorithm: str) -> None:
    asked = TASK.policy(algorithm)
    here, there = shoal.anonymize(PEOPLE, asked), shoal.anonymize(database.load(PEOPLE), asked)
    there.save("table:reported", force=True)
    assert summary(there) == summary(here)


@pytest.mark.parametrize("attacked", [False, True])
def test_the_command_line_writes_the_same_page(tmp_path, monkeypatch, attacked) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    TASK.policy("optimal").save(tmp_path / "policy.toml")
    pages = []
    for engine in ("local", "duckdb"):
        arguments = ["anonymize", "people.parquet", "--engine", engine, "-p", "policy.toml", "-q", "--force"]
        files = [*arguments, "-o", "release.parquet", "--report", f"{engine}.html", *["--no-attacks"] * (not attacked)]
        done = CliRunner().invoke(app, [str(tmp_path / word) if "." in word else word for word in files])
        assert done.exit_code == 0, done.output
        page = DIGEST.sub("", (tmp_path / f"{engine}.html").read_text(encoding="utf-8"))
        assert ('<h2 id="attacks">' in page) == attacked
        # Rows in an engine have no order, and nobody knows whose they were: what attacks find may differ there.
        page = re.sub('<section aria-labelledby="attacks">.*?</section>', "", page, flags=re.DOTALL)
        pages.append(ATTACKS.sub("", page))
    assert pages[0] == pages[1]
    assert "This release satisfies its policy" in pages[0]
