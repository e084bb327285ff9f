"""How Spark on Glue finds the Iceberg tables: the catalog that jobs call `glue_catalog`."""

from aws_cdk import Aws

FORMATS = "iceberg"  # of --datalake-formats, which brings the library
CATALOG = "spark.sql.catalog.glue_catalog"
# The same as in signalbox/local/spark/jobs.py; a test compares the two. Tables lie where the database says.
SETTINGS = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    CATALOG: "org.apache.iceberg.spark.SparkCatalog",
    f"{CATALOG}.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
    f"{CATALOG}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
}
# Glue 5.1 looks for buckets in us-east-2 unless it is told.
REGION = {"spark.hadoop.fs.s3a.endpoint.region": Aws.REGION}


def conf() -> str:
    """Return the value of the one `--conf` that a Glue job takes: each further setting brings its own flag along."""
    return " --conf ".join(f"{key}={value}" for key, value in (SETTINGS | REGION).items())
