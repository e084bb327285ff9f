"""Objects of S3 as a source of files."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.clients.sarracenia.sources import ByteRange, NotFetched

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_s3.client import S3Client

CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class S3Source:
    """A `Source` for URLs such as `s3://bucket/prefix/name`; `client` is called at the first such URL."""

    client: Callable[[], "S3Client"]

    def __call__(self, url: str, byte_range: ByteRange | None) -> Iterator[bytes]:
        """Yield the bytes of an object, or of a range of it. Raises `NotFetched`."""
        parts = urlsplit(url)
        request: dict[str, Any] = {"Bucket": parts.netloc, "Key": unquote(parts.path).removeprefix("/")}
        try:
            if byte_range:
                request["Range"] = byte_range.header
            yield from self.client().get_object(**request)["Body"].iter_chunks(CHUNK_BYTES)
        except (BotoCoreError, ClientError, ValueError) as error:
            raise NotFetched(f"cannot fetch {url[:200]!r}: {error}") from error


def s3_source(session: Callable[[], "boto3.Session"]) -> S3Source:
    """Return the S3 source of a session; the session is created when the first URL is fetched."""
    return S3Source(cache(lambda: session().client("s3")))
