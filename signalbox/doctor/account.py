"""The account and the region: who deploys, and where."""

from dataclasses import dataclass

from signalbox.doctor.findings import Finding, ok, stop, warn

CREDENTIALS, REGION = "credentials", "region"
SUPPORTED_PARTITION = "aws"


@dataclass(frozen=True, slots=True)
class Identity:
    """The answer of STS: the account and the ARN of the caller."""

    account: str
    arn: str


def identity_finding(identity: Identity) -> Finding:
    """Return the finding that names the account and the role or user."""
    caller = identity.arn.split(":", 5)[-1]
    text = f"account {identity.account}, as {caller}"
    if caller == "root":
        return warn(CREDENTIALS, text, remedy="deploy with a role or user: the root user cannot assume CDK's roles")
    return ok(CREDENTIALS, text)


def region_finding(region: str, *, partition: str | None) -> Finding:
    """Return the finding on a region; `partition` is None for a name that is not a region's."""
    if partition is None:
        return stop(REGION, f"{region!r} is not a region of AWS", remedy="set AWS_REGION to one, such as eu-central-1")
    if partition != SUPPORTED_PARTITION:
        text = f"{region} is in the partition {partition!r}; Signalbox was written for {SUPPORTED_PARTITION!r} only"
        return stop(REGION, text, remedy=f"choose a region of the partition {SUPPORTED_PARTITION!r}")
    return ok(REGION, region)
