"""The text files of exported logs: one for each topic and day, with one line for each event, in order."""

import json
import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from botocore.exceptions import ClientError
from pyspark.sql import Row

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

SAFE = ".-_~ "  # characters of a topic in an object's key, in addition to letters and digits
REPLACED = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey")


def write_log_files(rows: Iterable[Row], path: str, *, s3: "S3Client") -> Iterator[tuple[str, str, str]]:
    """Write a file for each exchange, topic and day; `rows` are sorted by these and by number.

    A file replaces a shorter one only: rows are only added to the table, so the longer one was read later. S3 compares
    again when it replaces, so that a run that is slow, or killed, leaves no older text than that of another run.
    Yields exchange, topic and error of each file that cannot be written, and continues with the next.
    """
    bucket, _, prefix = path.removeprefix("s3://").partition("/")
    condition: dict[str, str] = {}
    for call in ("PutObject", "CompleteMultipartUpload"):  # `upload_fileobj` has no parameter for conditions
        s3.meta.events.register(f"before-call.s3.{call}", lambda params, **_: params["headers"].update(condition))
    for (exchange, topic, day), found in groupby(rows, key=lambda row: (row.exchange, row.topic, row.day)):
        try:
            key = f"{prefix}/{exchange}/topic={quote(topic, safe=SAFE)}/{day}.txt"
            with tempfile.NamedTemporaryFile() as file:
                for row in found:
                    file.write(f"{log_line(row)}\n".encode(errors="replace"))
                file.flush()
                _upload(Path(file.name), bucket, key, s3=s3, condition=condition)
        except Exception as error:  # noqa: BLE001 - whatever it is, other topics are written
            yield exchange, topic, repr(error)


def _upload(file: Path, bucket: str, key: str, *, s3: "S3Client", condition: dict[str, str]) -> None:
    while _may_replace(s3, bucket, key, size=file.stat().st_size, condition=condition):
        try:
            with file.open("rb") as text:  # which the upload closes
                s3.upload_fileobj(text, bucket, key)
        except ClientError as error:
            if error.response["Error"]["Code"] not in REPLACED:
                raise


def _may_replace(s3: "S3Client", bucket: str, key: str, *, size: int, condition: dict[str, str]) -> bool:
    """Return whether no file is stored or a shorter one, and set the condition that this stays so, or none."""
    condition.clear()
    try:
        stored = s3.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response["Error"]["Code"] != "404":
            raise
        condition["If-None-Match"] = "*"
    else:
        if stored["ContentLength"] < size:
            condition["If-Match"] = stored["ETag"]
    return bool(condition)


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
