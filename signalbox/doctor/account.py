"""The account and the region: who deploys, and where."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from signalbox.doctor.findings import Finding, ok, stop, warn

CREDENTIALS, REGION = "credentials", "region"
SUPPORTED_PARTITION = "aws"
# EC2, DescribeRegions, `OptInStatus`: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Region.html
ENABLED = ("opt-in-not-required", "opted-in")


@dataclass(frozen=True, slots=True)
class Identity:
    """The answer of STS: the account and the ARN of the caller."""

    account: str
    arn: str


@dataclass(frozen=True, slots=True)
class Region:
    """A region with its opt-in status in the account."""

    name: str
    status: str


def identity_finding(identity: Identity) -> Finding:
    """Return the finding that names the account and the role or user."""
    caller = identity.arn.split(":", 5)[-1]
    text = f"account {identity.account}, as {caller}"
    if caller == "root":
        return warn(CREDENTIALS, text, remedy="deploy with a role or user: the root user cannot assume CDK's roles")
    return ok(CREDENTIALS, text)


def partition_finding(region: str, *, partition: str | None) -> Finding | None:
    """Return the obstacle of a region outside the supported partition, or None."""
    if partition is None:
        return stop(REGION, f"{region!r} is not a region of AWS", remedy="set AWS_REGION to one, such as eu-central-1")
    if partition != SUPPORTED_PARTITION:
        text = f"{region} is in the partition {partition!r}; Signalbox was written for {SUPPORTED_PARTITION!r} only"
        return stop(REGION, text, remedy=f"choose a region of the partition {SUPPORTED_PARTITION!r}")
    return None


def region_finding(region: str, *, regions: Sequence[Region]) -> Finding:
    """Return the finding on a region of the partition; `regions` are all regions with their status."""
    found = next((one for one in regions if one.name == region), None)
    if found is None:
        near = get_close_matches(region, [one.name for one in regions], n=1, cutoff=0)
        remedy = f"set AWS_REGION to a region of AWS; the most similar one is {near[0]}" if near else "set AWS_REGION"
        return stop(REGION, f"{region!r} is not a region of AWS", remedy=remedy)
    if found.status not in ENABLED:
        remedy = f"enable it: aws account enable-region --region-name {region}, or choose another region"
        return stop(REGION, f"{region} is not enabled in this account ({found.status})", remedy=remedy)
    return ok(REGION, f"{region}, enabled")
