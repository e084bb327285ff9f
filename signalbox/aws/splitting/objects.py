"""The metadata of S3 objects: one HeadObject for each, in parallel and within a bounded time."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from signalbox.aws.shared.errors import is_retryable
from signalbox.backoff import Backoff
from signalbox.clock import Clock
from signalbox.parallel import ParallelMap
from signalbox.splitting.model.s3_objects import Metadata, S3Object, Unread

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

# The version of an event may be a delete marker, to which S3 answers 405. Without s3:ListBucket it answers 403 instead
# of 404 (https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html).
REASONS = {403: Unread.FORBIDDEN, 404: Unread.MISSING, 405: Unread.MISSING}
ANY = "*"


@dataclass(frozen=True, slots=True)
class S3ObjectMetadata:
    """`ObjectMetadata` of the objects in `buckets`, whose names may end with `*`; other buckets are not called.

    No call begins later than `patience` after the first; `client` is called once for a batch.
    """

    client: Callable[[], "S3Client"]
    buckets: Sequence[str]
    clock: Clock
    draw: Callable[[], float]
    patience: timedelta
    parallel_map: ParallelMap

    def fetch(self, objects: Collection[S3Object]) -> Mapping[S3Object, Metadata | Unread]:
        """Return the metadata of each object, or the reason for which it is not known."""
        allowed = [one for one in objects if self._is_allowed(one.bucket)]
        others: dict[S3Object, Metadata | Unread] = dict.fromkeys(objects, Unread.OTHER_BUCKET)
        if not allowed:
            return others
        until = self.clock.now() + self.patience
        read = partial(self._read, self.client(), Backoff(self.clock, self.draw, lambda: until))
        return others | dict(zip(allowed, self.parallel_map(read, allowed), strict=True))

    def _is_allowed(self, bucket: str) -> bool:
        return any(
            bucket.startswith(name.removesuffix(ANY)) if name.endswith(ANY) else bucket == name for name in self.buckets
        )

    def _read(self, s3: "S3Client", backoff: Backoff, wanted: S3Object) -> Metadata | Unread:
        until = backoff.deadline()
        if until is not None and self.clock.now() > until:
            return Unread.UNAVAILABLE  # the objects before have taken all the time
        for _ in backoff.attempts():
            try:
                return _metadata(s3, wanted)
            except ParamValidationError:
                return Unread.REFUSED  # for example a key that is too long
            except ClientError as error:
                if not is_retryable(error):
                    return REASONS.get(error.response["ResponseMetadata"]["HTTPStatusCode"], Unread.REFUSED)
            except BotoCoreError:
                continue  # no response arrived
        return Unread.UNAVAILABLE


def _metadata(s3: "S3Client", wanted: S3Object) -> Metadata:
    if wanted.version_id is None:
        found = s3.head_object(Bucket=wanted.bucket, Key=wanted.key)
    else:
        found = s3.head_object(Bucket=wanted.bucket, Key=wanted.key, VersionId=wanted.version_id)
    return {name.lower(): text for name, text in found["Metadata"].items()}
