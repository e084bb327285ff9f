"""The CDK bootstrap of the account and region."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from signalbox.aws.doctor.calls import PATIENCE, call

if TYPE_CHECKING:
    import boto3

QUALIFIER = "hnb659fds"  # CDK's default
VERSION_PARAMETER = f"/cdk-bootstrap/{QUALIFIER}/version"


@dataclass(frozen=True, slots=True)
class AssetsBucket:
    """The assets bucket: whether it exists, and the key of its default encryption; None without KMS."""

    exists: bool
    key: str | None = None


def bootstrap_version(session: "boto3.Session") -> int | None:
    """Return the version of the bootstrap, or None without one. Raises the errors of `call`."""
    with call("ssm:GetParameter"):
        ssm = session.client("ssm", config=PATIENCE)
        try:
            return int(ssm.get_parameter(Name=VERSION_PARAMETER)["Parameter"]["Value"])
        except ssm.exceptions.ParameterNotFound:
            return None


def assets_bucket(session: "boto3.Session", *, account: str, region: str) -> AssetsBucket:
    """Return the assets bucket of the bootstrap. Raises the errors of `call`."""
    with call("s3:GetEncryptionConfiguration"):
        s3 = session.client("s3", config=PATIENCE)
        try:
            found = s3.get_bucket_encryption(
                Bucket=f"cdk-{QUALIFIER}-assets-{account}-{region}", ExpectedBucketOwner=account
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchBucket":
                return AssetsBucket(exists=False)
            raise
    (rule, *_) = found["ServerSideEncryptionConfiguration"]["Rules"]
    return AssetsBucket(exists=True, key=rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID"))
