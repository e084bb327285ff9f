"""Exported logs of topics, downloaded from the bucket of the history."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from signalbox.aws.shared.errors import translate_read_errors
from signalbox.history.jobs import LOG_PREFIX

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

TOPIC = "topic="
LONGEST_NAME, KEPT_CHARACTERS = 255, 200
"""The characters of a folder's name on every system, and those of a longer one that stay: publishers choose topics."""


def has_logs(s3: "S3Client", bucket: str, exchange: str) -> bool:
    """Return whether a log of an exchange was exported. Raises `EffectFailed`."""
    with translate_read_errors(f"exported logs of exchange {exchange!r}"):
        return bool(s3.list_objects_v2(Bucket=bucket, Prefix=f"{LOG_PREFIX}/{exchange}/", MaxKeys=1).get("Contents"))


def download_logs(
    s3: "S3Client", bucket: str, exchange: str, *, is_selected: Callable[[str], bool], home: Path
) -> Iterator[Path]:
    """Download the text of each day of each selected topic into `home`, and yield the paths. Raises `EffectFailed`."""
    with translate_read_errors(f"exported logs of exchange {exchange!r}"):
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{LOG_PREFIX}/{exchange}/{TOPIC}")
        for key in [one["Key"] for page in pages for one in page.get("Contents", ())]:
            _, _, folder, day = key.split("/")
            if is_selected(unquote(folder.removeprefix(TOPIC))):
                path = home / exchange / _shortened(folder) / day
                path.parent.mkdir(parents=True, exist_ok=True)
                s3.download_file(bucket, key, str(path))
                yield path


def _shortened(folder: str) -> str:
    if len(folder) <= LONGEST_NAME:
        return folder
    return f"{folder[:KEPT_CHARACTERS]}…{hashlib.sha256(folder.encode()).hexdigest()[:16]}"
