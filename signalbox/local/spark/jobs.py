"""Glue jobs on this machine: their entry scripts run with PySpark against the emulator's S3 and catalog."""

import json
import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from signalbox.errors import RejectedError, UnavailableError
from signalbox.local.emulator.lifecycle import Credentials
from signalbox.local.files import CHECKOUT
from signalbox.local.processes import piped
from signalbox.local.spark.jars import jars, without_noise
from signalbox.local.tools import java_home

JOBS = CHECKOUT / "glue_jobs"
START_SPARK = "--start-spark"
JOB_RUNNER = CHECKOUT / "signalbox" / "local" / "spark" / "job_runner.py"
CATALOG = "spark.sql.catalog.glue_catalog"
# The settings of jobs on AWS (stacks/history/job.py); a test compares the two.
ICEBERG_SETTINGS = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    CATALOG: "org.apache.iceberg.spark.SparkCatalog",
    f"{CATALOG}.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
    f"{CATALOG}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
}
# Settings that make sessions over few rows fast; the tests of the jobs use them, too.
SMALL_DATA_SETTINGS = {
    # Its ports on loopback would take calls and blocks of data from every user of the machine.
    "spark.authenticate": "true",
    # Query plans are shown on Spark's page only, and take long to write.
    "spark.ui.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "1000",
    # The C1 compiler and the serial collector start faster and do not use the second core.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
SETTINGS = {
    **SMALL_DATA_SETTINGS,
    "spark.master": "local[2]",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # The emulator writes many small files: read many of them in one task, and list them at once.
    "spark.sql.files.openCostInBytes": "65536",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.aws.credentials.provider": "com.amazonaws.auth.EnvironmentVariableCredentialsProvider",
    "spark.hadoop.fs.s3a.attempts.maximum": "2",
    "spark.hadoop.fs.s3a.retry.limit": "2",
}
LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
# PySpark's gateway counts as a shell, whose level would become the root's
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
# A rejected write, which the job repeats; an error that it does not repeat ends it
logger.writes.name = org.apache.spark.sql.execution.datasources.v2
logger.writes.level = off
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex{short}
"""
IGNORED_VARIABLES = ("AWS_", "SPARK_", "PYSPARK_", "HADOOP_", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "PYTHONPATH")
TAIL_LINES = 15
REFUSAL = "refusal"  # the file with the text of an input that a job refuses
ADVICE = {
    "Connection refused": "Nothing responds at the endpoint: `signalbox local status` shows whether the emulator runs.",
    "Status Code: 403": "The credentials do not allow reading or writing; those of a previous emulator are invalid.",
    "No space left on device": "The disk of the checkout or of temporary files is full: free some space.",
    "ConflictingRunsError": "Other runs change the same rows: wait for their end, and run the command again.",
    "Java gateway process exited": "Java did not start: is there enough memory, and is JAVA_HOME a Java 17?",
}


def run_jobs(
    jobs: Sequence[tuple[str, Mapping[str, str]]],
    *,
    endpoint_url: str,
    credentials: Credentials,
    region: str,
    on_line: Callable[[str], None],
    when: Callable[[], None] | None = None,
) -> None:
    """Run jobs one after another in one Spark session, which takes longer to start than most jobs take.

    With `when`, Spark starts at once, and the jobs when `when` returns. Each line of the output is passed to `on_line`;
    `s3://` is the endpoint's S3. The first run downloads the archives that PySpark lacks. The first job that fails ends
    the run. Raises `UnavailableError` with the end of Spark's output if a job fails, and `RejectedError` for what it
    refuses and if it does not exist.
    """
    commands = [[str(_script(name)), *_words(arguments)] for name, arguments in jobs]
    class_path = f"{jars(on_line)}/*"
    with tempfile.TemporaryDirectory(prefix="signalbox-spark-") as name_of_folder:
        folder = Path(name_of_folder)
        own = {
            "spark.driver.extraClassPath": class_path,
            "spark.hadoop.hadoop.tmp.dir": str(folder),
            "spark.local.dir": str(folder),
        }
        _write_settings(folder, SETTINGS | ICEBERG_SETTINGS | _endpoint_settings(endpoint_url, region) | own)
        failure = _run(
            [sys.executable, str(JOB_RUNNER), *([] if when is None else [START_SPARK])],
            _environment(folder, credentials, endpoint_url=endpoint_url, region=region),
            folder=folder,
            on_line=on_line,
            given=json.dumps(commands),
            when=when,
        )
        refusal = folder / REFUSAL
        if refusal.exists():
            raise RejectedError(refusal.read_text())
    if failure is not None:
        names = ", ".join(name for name, _arguments in jobs)
        advice = [advice for sign, advice in ADVICE.items() if any(sign in line for line in failure)]
        raise UnavailableError("\n".join([f"the Glue job {names} failed; the end of its output:", *failure, *advice]))


def _words(arguments: Mapping[str, str]) -> list[str]:
    return [word for key, value in arguments.items() for word in (f"--{key}", value)]


def _endpoint_settings(endpoint_url: str, region: str) -> dict[str, str]:
    """Return the settings that point S3 and the catalog to the emulator; all others are as on AWS."""
    return {
        "spark.hadoop.fs.s3a.endpoint": endpoint_url,
        "spark.hadoop.fs.s3a.endpoint.region": region,
        f"{CATALOG}.glue.endpoint": endpoint_url,
        f"{CATALOG}.s3.endpoint": endpoint_url,
        f"{CATALOG}.s3.path-style-access": "true",
        f"{CATALOG}.client.region": region,
    }


def _script(name: str) -> Path:
    jobs = {path.stem: path for path in JOBS.glob("*.py") if "__main__" in path.read_text()}
    if name not in jobs:
        raise RejectedError(f"there is no Glue job {name!r}; the jobs are: {', '.join(sorted(jobs))}")
    return jobs[name]


def _write_settings(folder: Path, settings: Mapping[str, str]) -> None:
    (folder / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    (folder / "log4j2.properties").write_text(LOGGING)


def _environment(folder: Path, credentials: Credentials, *, endpoint_url: str, region: str) -> dict[str, str]:
    """Return the machine's environment without other settings of AWS and Spark, and with the credentials."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(IGNORED_VARIABLES)}
    return own | {
        "JAVA_HOME": str(java_home()),
        "LC_ALL": "C.UTF-8",  # otherwise Java may not find files whose paths are not ASCII
        "PYTHONPATH": str(CHECKOUT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AWS_ENDPOINT_URL": endpoint_url,  # for boto3, with which some jobs call other services than S3
        "AWS_DEFAULT_REGION": region,
        "AWS_ACCESS_KEY_ID": credentials.access_key_id,
        "AWS_SECRET_ACCESS_KEY": credentials.secret_access_key,
    }


def _run(
    command: list[str],
    environment: Mapping[str, str],
    *,
    folder: Path,
    on_line: Callable[[str], None],
    given: str = "",
    when: Callable[[], None] | None = None,
) -> Sequence[str] | None:
    """Run the command in the folder; return None if it succeeds, otherwise the end of its output.

    Its standard input is `given`, as soon as `when` returns.
    """
    last: deque[str] = deque(maxlen=TAIL_LINES)
    with piped(command, folder=folder, environment=environment, has_input=True) as process:
        try:
            if when is not None:
                when()
            _give(process, given)
            for line in without_noise(process.stdout or ()):
                last.append(line)
                on_line(line)
        except BaseException:
            process.terminate()
            raise
    return list(last) if process.returncode else None


def _give(process: "subprocess.Popen[str]", text: str) -> None:
    """Write a text to a process's standard input and close it; a process that has ended reports why by itself."""
    if process.stdin is not None:
        with suppress(BrokenPipeError), process.stdin as stream:
            stream.write(text)
