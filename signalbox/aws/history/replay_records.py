"""Records of replays in S3: one object each, replaced only by the run that read it last."""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from signalbox.aws.shared.errors import reason, translate_read_errors
from signalbox.errors import UnavailableError
from signalbox.history.replay_state import ReplayId, ReplayProgress

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

CONFLICT_CODES = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey"})
NOT_FOUND_CODES = frozenset({"NoSuchKey", "404"})


class ReplayBusy(UnavailableError):
    """Raised when another run has changed the replay's record."""


@dataclass(slots=True)
class S3ReplayRecords:
    """`ReplayRecords` below a prefix of a bucket."""

    s3: "S3Client"
    bucket: str
    prefix: str
    _tags: dict[ReplayId, str] = field(default_factory=dict)

    def load(self, replay_id: ReplayId) -> ReplayProgress | None:
        """Return a record, or None if it does not exist. Raises `InvalidReplay` and `EffectFailed`."""
        with translate_read_errors(_description(replay_id)):
            try:
                found = self.s3.get_object(Bucket=self.bucket, Key=self._key(replay_id))
            except ClientError as error:
                if error.response["Error"]["Code"] in NOT_FOUND_CODES:
                    return None
                raise
            document = json.loads(found["Body"].read())
        self._tags[replay_id] = found["ETag"]
        return ReplayProgress.parse(document)

    def save(self, progress: ReplayProgress) -> None:
        """Write a record, if no other run has changed it since it was loaded or saved here.

        Raises `ReplayBusy` and `EffectFailed`.
        """
        name = progress.replay_id
        seen = self._tags.get(name)
        condition: dict[str, Any] = {"IfNoneMatch": "*"} if seen is None else {"IfMatch": seen}
        body = json.dumps(progress.to_document(), separators=(",", ":")).encode()
        with translate_read_errors(_description(name)):
            try:
                kept = self.s3.put_object(
                    Bucket=self.bucket, Key=self._key(name), Body=body, ContentType="application/json", **condition
                )
            except ClientError as error:
                if error.response["Error"]["Code"] in CONFLICT_CODES:
                    raise ReplayBusy(f"another run uses {_description(name)}: {reason(error, 'its record')}") from error
                raise
        self._tags[name] = kept["ETag"]

    def _key(self, replay_id: ReplayId) -> str:
        return f"{self.prefix}{replay_id}.json"


def _description(replay_id: ReplayId) -> str:
    return f"replay {str(replay_id)!r}"
