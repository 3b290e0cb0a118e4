"""The logger ``shoal``: phases and counts, never a value, and silent unless it is turned on."""

import logging
import subprocess
import sys

import pyarrow as pa

import shoal
from shoal.release import replay

SECRETS = ["zebra", "quokka", "31234", "41234"]
PEOPLE = pa.table({"zip": ["31234", "31234", "41234", "41234"] * 2, "animal": ["zebra", "quokka"] * 4})
POLICY = {
    "columns": {"zip": {"role": "quasi", "hierarchy": {"mask": "right"}}, "animal": {"role": "sensitive"}},
    "require": [{"model": "k-anonymity", "k": 3}],
}


def test_functions_tell_what_they_do_without_values(caplog, tmp_path):
    caplog.set_level(logging.DEBUG, logger="shoal")
    shoal.inspect(PEOPLE)
    release = shoal.anonymize(PEOPLE, POLICY)
    release.save(tmp_path / "quokka.csv")
    shoal.check(release.table, POLICY)
    shoal.attack(release)
    shoal.frontier(PEOPLE, POLICY, k=[2, 3])
    shoal.compare(PEOPLE, POLICY, algorithms=["optimal"])
    replay.replay(replay.described(release), PEOPLE)
    lines = [record.getMessage() for record in caplog.records]
    for begin in ("inspect: 2 columns", "anonymize: 8 records in", "save: 8 records", "check: 8 records", "replay: 8"):
        assert any(line.startswith(begin) for line in lines), begin
    assert any(line.startswith("attack:") for line in lines)
    assert {record.name for record in caplog.records} == {"shoal"}
    assert {record.levelno for record in caplog.records} == {logging.DEBUG, logging.INFO}
    assert "counting" in lines
    assert [line for line in lines if any(secret in line for secret in SECRETS)] == []


def test_figures_of_a_phase_are_no_lines_of_their_own(caplog):
    caplog.set_level(logging.DEBUG, logger="shoal")
    from shoal.text.log import logged

    told = []
    progress = logged(lambda what, share: told.append((what, share)))
    for i in range(5):
        progress(f"best 0.{i}, none below 0.0", i / 5)
    assert [record.getMessage() for record in caplog.records] == ["best …, none below …"]
    assert len(told) == 5


def test_nothing_is_printed_unless_logging_is_configured():
    code = (
        "import pyarrow as pa, shoal\n"
        "shoal.anonymize(pa.table({'a': ['1', '1']}), {'columns': {'a': {'role': 'quasi'}}, "
        "'require': [{'model': 'k-anonymity', 'k': 2}]})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
