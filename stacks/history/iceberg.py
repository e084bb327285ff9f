"""Spark settings of the Glue jobs for the Iceberg catalog `glue_catalog`."""

from aws_cdk import Aws

FORMATS = "iceberg"  # of --datalake-formats, which installs the library
CATALOG = "spark.sql.catalog.glue_catalog"
# Equal to the settings in signalbox/local/spark/jobs.py; a test compares the two. The database sets the tables' path.
SETTINGS = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    CATALOG: "org.apache.iceberg.spark.SparkCatalog",
    f"{CATALOG}.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
    f"{CATALOG}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
}
# Without this setting Glue 5.1 searches buckets in us-east-2.
REGION = {"spark.hadoop.fs.s3a.endpoint.region": Aws.REGION}


def spark_conf() -> str:
    """Return the value of a Glue job's single `--conf`; it contains the flag `--conf` before each further setting."""
    return " --conf ".join(f"{key}={value}" for key, value in (SETTINGS | REGION).items())
