"""A reader of Parquet files as Firehose and the jobs write them, without other libraries."""
