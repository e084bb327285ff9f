"""Report files, downloaded from the bucket of the history."""

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import translate_read_errors
from signalbox.history.jobs import FILE_EXTENSIONS, ReportJob

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client


def download_report(s3: "S3Client", bucket: str, report: ReportJob, days: Iterable[date], home: Path) -> Iterator[Path]:
    """Download the text, picture and JSON of each day into a folder, and yield their paths. Raises `EffectFailed`."""
    home.mkdir(parents=True, exist_ok=True)
    for day in days:
        for kind, ending in FILE_EXTENSIONS.items():
            path = home / f"{day}.{ending}"
            with translate_read_errors(f"report {report.folder!r} of {day}"):
                s3.download_file(bucket, report.key(kind, day.isoformat()), str(path))
            yield path
