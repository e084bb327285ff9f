"""The caller's identity, and the regions with their status."""

from typing import TYPE_CHECKING

from botocore.exceptions import UnknownRegionError

from signalbox.aws.doctor.calls import PATIENCE, call
from signalbox.doctor.account import Identity, Region

if TYPE_CHECKING:
    import boto3

# Always enabled: in a region that is not, STS refuses valid credentials as unknown.
HOME_REGION = "us-east-1"


def identity(session: "boto3.Session") -> Identity:
    """Return the account and ARN of the credentials. Raises the errors of `call`."""
    with call("sts:GetCallerIdentity"):
        found = session.client("sts", region_name=HOME_REGION, config=PATIENCE).get_caller_identity()
    return Identity(found["Account"], found["Arn"])


def partition(session: "boto3.Session", region: str) -> str | None:
    """Return the partition whose pattern a region's name matches, or None; makes no call."""
    try:
        return session.get_partition_for_region(region)
    except UnknownRegionError:
        return None


def regions(session: "boto3.Session") -> list[Region]:
    """Return all regions of the partition with their opt-in status. Raises the errors of `call`."""
    with call("ec2:DescribeRegions"):
        ec2 = session.client("ec2", region_name=HOME_REGION, config=PATIENCE)
        found = ec2.describe_regions(AllRegions=True)["Regions"]
    return [Region(one["RegionName"], one.get("OptInStatus", "")) for one in found]
