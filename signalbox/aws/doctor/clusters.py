"""The descriptions of EKS clusters."""

from typing import TYPE_CHECKING

from signalbox.aws.doctor.calls import PATIENCE, call
from signalbox.doctor.clusters import CONFIG_MAP, EksCluster

if TYPE_CHECKING:
    import boto3


def cluster(session: "boto3.Session", name: str) -> EksCluster | None:
    """Return a cluster of this account and region, or None. Raises the errors of `call`."""
    eks = session.client("eks", config=PATIENCE)
    with call("eks:DescribeCluster"):
        try:
            found = eks.describe_cluster(name=name)["cluster"]
        except eks.exceptions.ResourceNotFoundException:
            return None
    network = found["resourcesVpcConfig"]
    return EksCluster(
        # Clusters from before access entries have no mode.
        authentication=found.get("accessConfig", {}).get("authenticationMode", CONFIG_MAP),
        is_public=network["endpointPublicAccess"],
        addresses=tuple(network.get("publicAccessCidrs", ())),
    )
