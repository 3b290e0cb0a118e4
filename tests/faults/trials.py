"""Run a command again and again, and let its first, second, … n-th change of a file fail, or kill it there.

    LD_PRELOAD=shim.so python trials.py shim.so FOLDER name

Each trial forks from a process that has loaded the package and runs the command in a fresh folder. Afterwards every
file must be as it was before or as it is after a run without faults, and after a failure nothing else may be there.
Prints the trials and what was wrong with them as JSON.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import random
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

COUNT, FAIL, KILL, NO_MEMORY = 0, 1, 2, 3
LOADED = (
    "shoal.cli.commands shoal.pipeline shoal.engines.connect shoal.inspection.inspect shoal.search.local.local "
    "shoal.attacks.run shoal.report.html shoal.release.replay shoal.verify.certified shoal.results.dp.query "
    "shoal.results.dp.synthesis shoal.results.output.checking openpyxl opendp.prelude cryptography"
)
N_PEOPLE = 60
POLICY = """
[columns]
age = { role = "quasi", hierarchy = { intervals = [10, 30] } }
job = { role = "quasi" }
cost = { role = "sensitive" }
[[require]]
model = "k-anonymity"
k = 3
"""

Files = Mapping[str, bytes]
Judge = Callable[[Files, Files, str], list[str]]  # files before, files now, standard output → what is wrong


@dataclass(frozen=True)
class Command:
    """A command that writes files, and how a run that was stopped may leave them."""

    line: str
    before: tuple[str, ...] = ()  # commands that prepare the folder
    outputs: tuple[str, ...] = ()  # whole or as before; folders end in a slash
    judge: Judge | None = None  # for files that differ from run to run


def ledger_covers_answer(path: str, entries: str) -> Judge:
    """Return a judge: an answer on standard output is in the ledger, which is never damaged."""

    def judge(before: Files, now: Files, output: str) -> list[str]:
        if path not in now:
            return ["an answer without a ledger"] if output.strip() else []
        try:
            n_entries = len(json.loads(now[path])[entries])
        except (ValueError, KeyError):
            return ["a damaged ledger"]
        n_before = len(json.loads(before[path])[entries]) if path in before else 0
        return ["an answer that the ledger does not know"] if output.strip() and n_entries <= n_before else []

    return judge


def ledger_covers_file(path: str) -> Judge:
    """Return a judge: a table that was written is in the ledger of tables."""

    def judge(before: Files, now: Files, output: str) -> list[str]:
        ledger = now.get("tables.json")
        try:
            n_tables = 0 if ledger is None else len(json.loads(ledger)["releases"])
        except (ValueError, KeyError):
            return ["a damaged ledger"]
        return ["a table that the ledger does not know"] if path in now and not n_tables else []

    return judge


def workbook_opens(path: str) -> Judge:
    """Return a judge: a workbook is absent, as before, or can be read to its end."""

    def judge(before: Files, now: Files, output: str) -> list[str]:
        import io

        import openpyxl

        if path not in now or now[path] == before.get(path):
            return []
        try:
            rows = list(openpyxl.load_workbook(io.BytesIO(now[path])).active.iter_rows())
        except Exception as error:
            return [f"a workbook that cannot be read: {type(error).__name__}"]
        return [] if len(rows) == N_PEOPLE + 1 else ["a workbook with some of the rows"]

    return judge


def in_process_of_its_own(function: Callable[[], str]) -> str:
    """Return what a function returns in a forked process, so that libraries that start threads load only there."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writer, function().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    return answer


def database_is_whole(before: Files, now: Files, output: str) -> list[str]:
    """A database opens, has its own table, and the release with all of its rows or not at all."""
    import tempfile

    def count() -> str:
        import duckdb

        with tempfile.TemporaryDirectory() as folder:
            for name, content in now.items():
                if name.startswith("people.duckdb"):  # the file and its log
                    (Path(folder) / name).write_bytes(content)
            with duckdb.connect(f"{folder}/people.duckdb") as connection:
                names = [name for (name,) in connection.execute("show tables").fetchall()]
                sizes = {name: connection.execute(f"select count(*) from {name}").fetchall()[0][0] for name in names}
        return json.dumps(sizes)

    whole = {"people": N_PEOPLE}
    answer = in_process_of_its_own(count)
    tables = json.loads(answer) if answer else {}
    return [] if tables in (whole, whole | {"release": N_PEOPLE}) else [f"tables {tables}"]


def keys_match(name: str) -> Judge:
    """Return a judge: a private key never stands without its public key; a kill may leave the public one alone."""

    def judge(before: Files, now: Files, output: str) -> list[str]:
        return ["a private key alone"] if f"{name}.key" in now and f"{name}.pub" not in now else []

    return judge


ANONYMIZE = "anonymize people.csv -p policy.toml -q --no-attacks"
QUERY = "query people.csv --budget epsilon=0.1 --ledger ledger.json --count -q --json"
TABLE = "output people.csv --by job --ledger tables.json --json"
COMMANDS = {
    "csv": Command(f"{ANONYMIZE} -o out.csv --certificate c.json --recoding r.json", outputs=("out.csv",)),
    "csv-again": Command(
        f"{ANONYMIZE} -o out.csv --force", ("anonymize people.csv -p other.toml -q -o out.csv",), ("out.csv",)
    ),
    "report": Command(f"{ANONYMIZE} -o out.csv --report report.html", outputs=("out.csv",)),
    "parquet": Command(f"{ANONYMIZE} -o out.parquet", outputs=("out.parquet",)),
    "xlsx": Command(f"{ANONYMIZE} -o out.xlsx", judge=workbook_opens("out.xlsx")),
    "duckdb-csv": Command(f"{ANONYMIZE} --engine duckdb -o out.csv", outputs=("out.csv",)),
    "folder": Command(f"{ANONYMIZE} --engine duckdb -o out", outputs=("out/",)),
    "folder-again": Command(
        f"{ANONYMIZE} --engine duckdb -o out --force", (f"{ANONYMIZE} --engine duckdb -o out",), ("out/",)
    ),
    "apply": Command(
        "apply r.json people.csv -q -o new.csv", (f"{ANONYMIZE} -o out.csv --recoding r.json",), ("new.csv",)
    ),
    "proposal": Command("inspect people.csv -o proposed.toml -q", outputs=("proposed.toml",)),
    "hierarchy": Command("hierarchy people.csv age --save age.csv -q", outputs=("age.csv",)),
    "keys": Command("keys me -q", judge=keys_match("me")),
    "query": Command(f"{QUERY} --total epsilon=1", judge=ledger_covers_answer("ledger.json", "expenses")),
    "query-again": Command(
        QUERY, (f"{QUERY} --total epsilon=1",), judge=ledger_covers_answer("ledger.json", "expenses")
    ),
    "table": Command(f"{TABLE} -o safe.csv", outputs=("safe.csv",), judge=ledger_covers_file("safe.csv")),
    "duckdb-table": Command(
        "anonymize duckdb://people.duckdb --table people -p policy.toml -q --no-attacks -o table:release",
        judge=database_is_whole,
    ),
    "synthesis": Command(
        "synthesize people.csv --columns age,job --bins age=0,40,99 --categories job=baker,nurse,smith "
        "--budget epsilon=1 --total epsilon=1 --ledger ledger.json --seed 1 --rows 20 -q -o made.csv",
        judge=ledger_covers_answer("ledger.json", "expenses"),
    ),
}


def written_files(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def prepared(folder: Path) -> None:
    """Write the table and the policies that all commands use."""
    draw = random.Random(4)
    jobs = ("baker", "nurse", "smith")
    rows = [f"{draw.randint(20, 79)},{draw.choice(jobs)},{draw.randint(1, 9)}" for _ in range(N_PEOPLE)]
    (folder / "people.csv").write_text("\n".join(["age,job,cost", *rows, ""]))
    (folder / "policy.toml").write_text(POLICY)
    (folder / "other.toml").write_text(POLICY.replace("k = 3", "k = 6"))

    def fill_database() -> str:
        import duckdb

        with duckdb.connect(str(folder / "people.duckdb")) as connection:
            connection.execute(f"create table people as from read_csv('{folder}/people.csv', all_varchar = true)")
        return ""

    in_process_of_its_own(fill_database)


class Trials:
    """The trials of one command."""

    def __init__(self, shim: str, folder: Path, command: Command) -> None:
        self.command = command
        self.folder = folder
        self.original = folder / "original"
        self.work = folder / "work"
        self.shared = mmap.mmap(-1, mmap.PAGESIZE)
        self.counter = ctypes.c_long.from_buffer(self.shared)
        self.arm = ctypes.CDLL(shim).fault_arm
        self.arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.POINTER(ctypes.c_long)]

    def run(self, most: int) -> list[tuple[int, str, list[str]]]:
        """Return for each trial its number, whether it failed or was killed, and what is wrong."""
        self.original.mkdir(parents=True)
        prepared(self.original)
        for line in self.command.before:
            self._fork(line, self.original, 0, COUNT)
        code, _, errors = self._trial(0, COUNT)
        if code != 0:
            raise SystemExit(f"without a fault: exit code {code}\n{errors}")
        whole = written_files(self.work)
        n_calls = self.counter.value
        numbers = range(1, n_calls + 1)
        step = max(1, -(-n_calls // most))  # every call, or every second, third …
        # Allocations of Python: some of the many, evenly on a logarithmic scale.
        draw = random.Random(7)
        allocations = sorted(int(10 ** draw.uniform(2.5, 6.5)) for _ in range(min(most, n_calls)))
        trials = (("fail", FAIL, numbers[::step]), ("kill", KILL, numbers[::step]), ("memory", NO_MEMORY, allocations))
        return [(n, name, self._judged(n, mode, whole)) for name, mode, each in trials for n in each]

    def _trial(self, number: int, mode: int) -> tuple[int, str, str]:
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.original, self.work)
        return self._fork(self.command.line, self.work, number, mode)

    def _fork(self, line: str, folder: Path, number: int, mode: int) -> tuple[int, str, str]:
        """Run a command in a process of its own; return its exit code, or minus the signal, and what it printed."""
        streams = [self.folder / name for name in ("stdout", "stderr")]
        child = os.fork()
        if not child:
            for path, stream in zip(streams, (1, 2), strict=True):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            temporary = folder / "tmp"
            temporary.mkdir(exist_ok=True)
            os.environ["TMPDIR"] = str(temporary)
            os.chdir(folder)
            sys.argv = ["shoal", *shlex.split(line)]
            from shoal.cli import main

            if mode == NO_MEMORY:
                import _testcapi

                _testcapi.set_nomemory(number, number + 1)
            else:
                self.arm(str(folder).encode(), number, mode, ctypes.byref(self.counter))
            main()
            os._exit(99)
        status = os.waitpid(child, 0)[1]
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        output, errors = (path.read_text(errors="replace") for path in streams)
        return code, output, errors

    def _judged(self, number: int, mode: int, whole: Files) -> list[str]:
        """Return what is wrong after one trial."""
        code, output, errors = self._trial(number, mode)
        before, now = written_files(self.original), written_files(self.work)
        wrong = []
        if mode == KILL and code != -signal.SIGKILL:
            wrong.append(f"exit code {code} instead of a kill")
        if mode != KILL and code not in (0, 1, 2):
            wrong.append(f"exit code {code}")
        if "Traceback" in errors:
            wrong.append("a traceback")
        for path, content in before.items():
            if not self._is_output(path) and self.command.judge is None and now.get(path) != content:
                wrong.append(f"{path} changed")
        wrong += [
            f"{path} is neither whole nor as before"
            for path in {*now, *whole, *before}
            if self._is_output(path) and now.get(path) not in (before.get(path), whole.get(path))
        ]
        wrong += self._torn_folders(before, now, whole)
        if code == 0 and self.command.outputs:
            wrong += [f"{p} is not there" for p in whole if self._is_output(p) and now.get(p) != whole[p]]
        if self.command.judge is not None:
            wrong += self.command.judge(before, now, output)
        left = [path for path in now if path not in before and path not in whole and not _may_stay(path, now[path])]
        if mode != KILL and (beside := [path for path in left if not self._is_output(path)]):
            wrong.append(f"left behind: {beside}")
        if temporary := [path for path in left if path.startswith("tmp/")]:
            wrong.append(f"left in the temporary folder: {temporary}")
        return wrong

    def _is_output(self, path: str) -> bool:
        return any(path == name or (name.endswith("/") and path.startswith(name)) for name in self.command.outputs)

    def _torn_folders(self, before: Files, now: Files, whole: Files) -> list[str]:
        """Return the folders that hold some files of one state and some of the other."""

        def under(files: Files, name: str) -> dict[str, bytes]:
            return {path: content for path, content in files.items() if path.startswith(name)}

        return [
            f"{name} is neither whole nor as before"
            for name in self.command.outputs
            if name.endswith("/") and under(now, name) not in (under(before, name), under(whole, name))
        ]


def _may_stay(path: str, content: bytes) -> bool:
    """Return whether a file may stay: a lock, a database's log, or what Python's ``tempfile`` tries a folder with."""
    return path.endswith((".lock", ".duckdb.wal")) or (path.startswith("tmp/") and content in (b"", b"blat"))


if __name__ == "__main__":
    _, shim_path, scratch, wanted, limit = sys.argv
    for module in LOADED.split():
        with suppress(ModuleNotFoundError):
            __import__(module)
    print(json.dumps(Trials(shim_path, Path(scratch), COMMANDS[wanted]).run(int(limit))))
