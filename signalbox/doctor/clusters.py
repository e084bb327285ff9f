"""Kubernetes clusters of EKS that the settings name: whether the stage can enter and reach them."""

from dataclasses import dataclass

from signalbox.doctor.findings import Finding, ok, stop, warn

CLUSTER = "EKS cluster"
CONFIG_MAP = "CONFIG_MAP"
ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True, slots=True)
class EksCluster:
    """A cluster as EKS describes it."""

    authentication: str
    """`API`, `API_AND_CONFIG_MAP` or `CONFIG_MAP`."""
    is_public: bool
    """Whether the endpoint has a public address."""
    addresses: tuple[str, ...]
    """The CIDRs that may use it."""


def cluster_finding(name: str, found: EksCluster | None) -> Finding:
    """Return the finding on a cluster of the setting `kubernetes_clusters`; None if EKS does not have it."""
    if found is None:
        return stop(CLUSTER, f"{name} does not exist: the deployment would fail", remedy="correct kubernetes_clusters")
    if found.authentication == CONFIG_MAP:
        return stop(
            CLUSTER,
            f"{name} has no access entries, since its authentication mode is {CONFIG_MAP}: the deployment would fail",
            remedy=f"aws eks update-cluster-config --name {name} --access-config "
            "authenticationMode=API_AND_CONFIG_MAP; it cannot be changed back",
        )
    if not found.is_public:
        remedy = "give it a public endpoint, or take it out of kubernetes_clusters"
        return stop(CLUSTER, f"{name} has a private endpoint, and functions run outside of VPCs", remedy=remedy)
    if ANYWHERE not in found.addresses:
        return warn(
            CLUSTER,
            f"{name} may be called from {', '.join(found.addresses)} only",
            remedy=f"Lambda has no fixed addresses: allow {ANYWHERE}, or take it out of kubernetes_clusters",
        )
    return ok(CLUSTER, f"{name} exists and can be entered")
