"""The text files of exported logs: one for each topic and day, with one line for each event, in order."""

import json
import tempfile
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import quote

from pyspark.sql import Row

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

IN_MEMORY_BYTES = 16 * 1024 * 1024
SAFE = ".-_~ "  # characters of a topic in an object's key, in addition to letters and digits


def write_log_files(rows: Iterable[Row], path: str, *, s3: "S3Client") -> None:
    """Write a file for each exchange, topic and day; `rows` are sorted by these and by number."""
    bucket, _, prefix = path.removeprefix("s3://").partition("/")
    for (exchange, topic, day), found in groupby(rows, key=lambda row: (row.exchange, row.topic, row.day)):
        with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES) as file:
            for row in found:
                file.write(f"{log_line(row)}\n".encode(errors="replace"))
            file.seek(0)
            s3.upload_fileobj(file, bucket, f"{prefix}/{exchange}/topic={quote(topic, safe=SAFE)}/{day}.txt")


def log_line(row: Row) -> str:
    """Return an event's line: time in UTC, number and message; a text of one line is unchanged, others are JSON."""
    return f"{row.at}\t{row.sequence}\t{_text(row)}"


def _text(row: Row) -> str:
    if row.body is None:
        return f"({row.omitted_bytes} bytes, too large for the log)"
    try:
        value = json.loads(row.body)
    except (ValueError, RecursionError):  # a body may be nested deeper than Python can parse
        value = row.body
    text = value if isinstance(value, str) else row.body
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)
