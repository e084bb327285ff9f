"""Adapters of the history to Firehose, Athena, Glue, S3 and SQS."""
