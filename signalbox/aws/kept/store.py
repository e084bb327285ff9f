"""Kept messages below a prefix of the history bucket, which encrypts objects with the stage's key and is versioned."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.errors import reason, translate_read_errors
from signalbox.errors import EffectFailed
from signalbox.kept.objects import KeptBatch, NotKept, StoredVersion, queue_prefix
from signalbox.queues import QueueName

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

GONE = frozenset({"NoSuchKey", "404"})


@dataclass(frozen=True, slots=True)
class S3KeptMessages:
    """`KeptWriter`, `KeptReader` and `KeptObjects`; `client` is called only when a queue is kept.

    Requests: PutObject for a batch; ListObjectsV2 for a thousand keys and GetObject for each object that is read;
    ListObjectVersions and DeleteObjects for a thousand versions.
    """

    client: Callable[[], "S3Client"]
    bucket: str

    def put(self, batch: KeptBatch) -> None:
        """Store a batch. Raises `NotKept` for every error of AWS, even a denied call: the permission can be granted."""
        key = batch.stored_as.key
        try:
            self.client().put_object(
                Bucket=self.bucket, Key=key, Body=batch.text.encode(), ContentType="application/json"
            )
        except (ClientError, BotoCoreError) as error:
            raise NotKept(reason(error, f"kept messages of queue {batch.stored_as.queue!r}")) from error

    def keys(self, queue: QueueName, *, after: str) -> Iterator[str]:
        """Yield the keys of a queue's objects behind a key, oldest first, page by page. Raises `EffectFailed`."""
        more, start = True, after
        while more:
            with translate_read_errors(f"kept messages of queue {queue!r}"):
                page = self.client().list_objects_v2(Bucket=self.bucket, Prefix=queue_prefix(queue), StartAfter=start)
            keys = [found["Key"] for found in page.get("Contents", [])]
            yield from keys
            more = page["IsTruncated"] and bool(keys)
            start = keys[-1] if keys else start

    def read(self, key: str) -> str | None:
        """Return the text of an object, or None if it was deleted meanwhile. Raises `EffectFailed`."""
        with translate_read_errors(key):
            try:
                return self.client().get_object(Bucket=self.bucket, Key=key)["Body"].read().decode()
            except ClientError as error:
                if error.response["Error"]["Code"] in GONE:
                    return None
                raise

    def versions(self, queue: QueueName) -> Iterator[Sequence[StoredVersion]]:
        """Yield pages of the versions of a queue's objects, oldest object first. Raises `EffectFailed`.

        Delete markers, which nothing of ours makes, count as versions.
        """
        marker: dict[str, Any] = {}
        while True:
            with translate_read_errors(f"kept messages of queue {queue!r}"):
                page = self.client().list_object_versions(Bucket=self.bucket, Prefix=queue_prefix(queue), **marker)
            found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            yield sorted((StoredVersion(one["Key"], one["VersionId"]) for one in found), key=lambda one: one.key)
            if not page["IsTruncated"]:
                return
            marker = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}

    def delete(self, versions: Sequence[StoredVersion]) -> None:
        """Delete at most a thousand versions of objects for good. Raises `EffectFailed`."""
        objects: list[ObjectIdentifierTypeDef] = [{"Key": one.key, "VersionId": one.version} for one in versions]
        with translate_read_errors("expired kept messages"):
            done = self.client().delete_objects(Bucket=self.bucket, Delete={"Objects": objects, "Quiet": True})
        if errors := done.get("Errors"):
            raise EffectFailed(f"{len(errors)} kept objects cannot be deleted: {errors[0].get('Code')}")
