"""The error of the reader of Parquet files."""

from signalbox.errors import RejectedError


class UnreadableParquet(RejectedError):
    """Raised when bytes are not a Parquet file, or use a feature that Firehose and the jobs do not use."""
