"""The caller's identity, and the partition of a region."""

from typing import TYPE_CHECKING

from botocore.exceptions import UnknownRegionError

from signalbox.aws.doctor.calls import PATIENCE
from signalbox.doctor.account import Identity

if TYPE_CHECKING:
    import boto3


def identity(session: "boto3.Session") -> Identity:
    """Return the account and ARN of the credentials.

    Raises botocore's errors; in a region that the account has not enabled, STS refuses valid credentials, too.
    """
    found = session.client("sts", config=PATIENCE).get_caller_identity()
    return Identity(found["Account"], found["Arn"])


def partition(session: "boto3.Session", region: str) -> str | None:
    """Return the partition whose pattern a region's name matches, or None; makes no call."""
    try:
        return session.get_partition_for_region(region)
    except UnknownRegionError:
        return None
