"""The archives that PySpark lacks for jobs on this machine: S3 and Iceberg."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from signalbox.local.maven import Archive, install

HADOOP = "3.3.4"  # the version in PySpark 3.5
ICEBERG = "1.10.0"  # the version in Glue 5.1
SDK = "1.12.262"  # the version that this Hadoop was built with
# Spark's S3 support. The SDK's parts are listed separately, since its bundle is 280 MB larger. Spark has their
# dependencies in newer versions, which must not be shadowed.
SDK_PARTS = {
    "core": "06fed99f929c389e168278c1b111aaf1afb270d07202fbbce92e73d1e4279678",
    "s3": "a0cb7580178bc0d4d3558295a5bb890008478da8a6b3241989c71238b0ed3be5",
    "kms": "c00f5ae7b334255f661d85512e7203af9523a04fb65d0c431c2eea2003ed8ae2",
    "sts": "659f48d8ebc02025c5042cc4b925f62610e81f334498f1b9e7a271ce20ecbcae",
    "dynamodb": "7af4ba06d0d9b3c2ab435089caecd0567810d203aa285f7aa72861f1964d442e",
}
HADOOP_AWS = "53f9ae03c681a30a50aa17524bd9790ab596b28481858e54efd989a826ed3a4a"
OPENSSL = "9f7058778978ec2ad90c7224401a4b0013d93e0dd3fa0f72b25244ffa3507ca8"
JMESPATH = "9001ea993a45d82a2d3086edcbda8a40b4e012d049a70fbf071fd329c0fbd777"
ICEBERG_RUNTIME = "70f9471870b2d456167d703c829f098a446b86bb1379eee338c0efa03a341026"
ICEBERG_BUNDLE = "172370cfc32a5f1ae5399b210e86fc04a366dc29a112d97ac8ffc74df7525596"
JARS = (
    Archive("org.apache.hadoop", "hadoop-aws", HADOOP, HADOOP_AWS),
    Archive("org.wildfly.openssl", "wildfly-openssl", "1.0.7.Final", OPENSSL),
    *(Archive("com.amazonaws", f"aws-java-sdk-{part}", SDK, sha256) for part, sha256 in SDK_PARTS.items()),
    Archive("com.amazonaws", "jmespath-java", SDK, JMESPATH),
    Archive("org.apache.iceberg", "iceberg-spark-runtime-3.5_2.12", ICEBERG, ICEBERG_RUNTIME),
    Archive("org.apache.iceberg", "iceberg-aws-bundle", ICEBERG, ICEBERG_BUNDLE),
)


def jars(on_line: Callable[[str], None]) -> Path:
    """Return the folder of the archives; download them first if they are missing.

    Raises `UnavailableError` if the download fails.
    """
    return install("spark-jars", JARS, on_line=on_line, size="119 MB")


# The frames of a stack trace; and what log4j writes before it reads its settings when it is one of many jars.
NOISE = ("\tat ", "\t... ", "WARNING: sun.reflect.Reflection.getCallerClass is not supported.")


def without_noise(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a program in Java that name a cause or a result, without stack frames and log4j's warning."""
    for line in lines:
        if line.strip(" ^~\n") and not line.startswith(NOISE):
            yield line.rstrip()
