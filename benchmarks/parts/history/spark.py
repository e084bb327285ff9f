"""A runner of the job `day` in one local Spark process, with tables in a folder."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.shared.processes import Measured, run
from signalbox.local.files import CHECKOUT
from signalbox.local.spark.jars import jars
from signalbox.local.spark.jobs import CATALOG, ICEBERG_SETTINGS, LOGGING
from signalbox.local.tools import java_home

DATABASE = "history"
RUNNER = Path(__file__).parent / "engines" / "jobs.py"
SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "6g",
    # Collects in larger steps than G1, and takes no processor time while tasks run.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.extensions": ICEBERG_SETTINGS["spark.sql.extensions"],
    CATALOG: ICEBERG_SETTINGS[CATALOG],
    f"{CATALOG}.type": "hadoop",
}


def compact_and_report(raw: Path, file_format: str, out: Path, *, days: Sequence[str]) -> Measured:
    """Compact raw files and create all reports of their days with the job `day`."""
    arguments = {
        "database": DATABASE,
        "history_path": str(raw),
        "raw_format": file_format,
        "report_path": str(out / "reports"),
        "day": days[-1],
        "days": str(len(days)),
        "maintain": "no",
    }
    words = [word for name, value in arguments.items() for word in (f"--{name}", value)]
    return _run([sys.executable, str(RUNNER), *words], out)


def compact(raw: Path, out: Path, *, day: str, index: Path | None = None) -> Measured:
    """Compact a day of raw Parquet files, and write the index of events by id if it has a folder."""
    words = ["--history_path", str(raw), "--database", DATABASE, "--maintain", "no", "--day", day]
    words += [] if index is None else ["--index_path", str(index)]
    return _run([sys.executable, str(CHECKOUT / "glue_jobs" / "compact_history.py"), *words], out)


def _run(command: list[str], out: Path) -> Measured:
    (out / "conf").mkdir(parents=True)
    # The stack creates the database; in a folder catalog that is a folder.
    (out / "tables" / DATABASE).mkdir(parents=True)
    settings = SETTINGS | {
        "spark.driver.extraClassPath": f"{jars(print)}/*",
        "spark.local.dir": str(out / "tmp"),
        f"{CATALOG}.warehouse": str(out / "tables"),
    }
    (out / "conf" / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    (out / "conf" / "log4j2.properties").write_text(LOGGING)
    return run(command, environment=_environment(out), folder=out)


def _environment(out: Path) -> Mapping[str, str]:
    return os.environ | {
        "JAVA_HOME": str(java_home()),
        "PYTHONPATH": str(CHECKOUT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(out / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "UTC",
    }
