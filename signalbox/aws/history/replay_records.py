"""Records of replays: one object each, which only the run that read it last may replace."""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from signalbox.aws.shared.errors import look, reason
from signalbox.errors import UnavailableError
from signalbox.history.replay_state import Progress, ReplayId

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

CHANGED = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey"})
NOT_THERE = frozenset({"NoSuchKey", "404"})


class ReplayBusy(UnavailableError):
    """Raised when another run works on the same replay."""


@dataclass(slots=True)
class S3Records:
    """`Records` under a prefix of a bucket."""

    s3: "S3Client"
    bucket: str
    prefix: str
    _tags: dict[ReplayId, str] = field(default_factory=dict)

    def load(self, replay_id: ReplayId) -> Progress | None:
        """Return a record, or None. Raises `InvalidReplay` and `EffectFailed`."""
        with look(_of(replay_id)):
            try:
                found = self.s3.get_object(Bucket=self.bucket, Key=self._key(replay_id))
            except ClientError as error:
                if error.response["Error"]["Code"] in NOT_THERE:
                    return None
                raise
            document = json.loads(found["Body"].read())
        self._tags[replay_id] = found["ETag"]
        return Progress.parse(document)

    def save(self, progress: Progress) -> None:
        """Keep a record that nobody else has changed since it was read or kept here.

        Raises `ReplayBusy` and `EffectFailed`.
        """
        name = progress.replay_id
        seen = self._tags.get(name)
        condition: dict[str, Any] = {"IfNoneMatch": "*"} if seen is None else {"IfMatch": seen}
        body = json.dumps(progress.to_document(), separators=(",", ":")).encode()
        with look(_of(name)):
            try:
                kept = self.s3.put_object(
                    Bucket=self.bucket, Key=self._key(name), Body=body, ContentType="application/json", **condition
                )
            except ClientError as error:
                if error.response["Error"]["Code"] in CHANGED:
                    raise ReplayBusy(f"another run works on {_of(name)}: {reason(error, 'its record')}") from error
                raise
        self._tags[name] = kept["ETag"]

    def _key(self, replay_id: ReplayId) -> str:
        return f"{self.prefix}{replay_id}.json"


def _of(replay_id: ReplayId) -> str:
    return f"replay {str(replay_id)!r}"
