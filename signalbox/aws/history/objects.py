"""Reads of objects of the history bucket, with their number and size."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from signalbox.aws.shared.errors import translate_read_errors

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

NOT_FOUND_CODES = frozenset({"NoSuchKey", "404"})


@dataclass(frozen=True, slots=True)
class LookupUsage:
    """The requests to S3 of a lookup, and the bytes of objects that they returned."""

    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ObjectPart:
    """Bytes of an object from the position `start`."""

    data: bytes
    start: int


@dataclass(frozen=True, slots=True)
class HistoryObjects:
    """The objects of one bucket; its methods may be called by several threads and raise `EffectFailed`."""

    s3: "S3Client"
    bucket: str
    _sizes: list[int] = field(default_factory=list)

    @property
    def usage(self) -> LookupUsage:
        """The usage of all reads until now."""
        return LookupUsage(len(self._sizes), sum(self._sizes))

    def find(self, key: str) -> bytes | None:
        """Return an object; None if it does not exist."""
        with translate_read_errors(self._description(key)):
            try:
                return self._get(key).data
            except ClientError as error:
                if error.response["Error"]["Code"] in NOT_FOUND_CODES:
                    self._sizes.append(0)
                    return None
                raise

    def part(self, key: str, start: int, end: int) -> bytes:
        """Return an object's bytes from `start` to before `end`."""
        with translate_read_errors(self._description(key)):
            return self._get(key, Range=f"bytes={start}-{end - 1}").data

    def tail(self, key: str, size: int) -> ObjectPart:
        """Return an object's last bytes, or the whole object if it is smaller."""
        with translate_read_errors(self._description(key)):
            return self._get(key, Range=f"bytes=-{size}")

    def keys(self, prefix: str, *, start_after: str) -> Iterator[tuple[str, datetime]]:
        """Yield the keys of objects with a prefix after a key, in order, with the times of their last change."""
        with translate_read_errors(self._description(prefix)):
            pages = self.s3.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=prefix, StartAfter=start_after
            )
            for page in pages:
                self._sizes.append(0)
                for found in page.get("Contents", ()):
                    yield found["Key"], found["LastModified"]

    def _get(self, key: str, **options: Any) -> ObjectPart:  # noqa: ANN401 - boto3's arguments
        found = self.s3.get_object(Bucket=self.bucket, Key=key, **options)
        data = found["Body"].read()
        self._sizes.append(len(data))
        # Such as `bytes 100-199/200`; a whole object has none.
        first = found.get("ContentRange", "bytes 0-").removeprefix("bytes ").partition("-")[0]
        return ObjectPart(data, int(first))

    def _description(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"
