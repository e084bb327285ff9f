"""Access to clusters of EKS: their description by AWS, and tokens that the function signs itself."""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import ClientError

from signalbox.aws.shared.kept import Kept
from signalbox.aws.splitting.kubernetes.access import ApiAddress, Remedies, reading
from signalbox.aws.splitting.kubernetes.api import ClusterGone, ClusterRefused, ClusterUnavailable

if TYPE_CHECKING:
    from botocore.signers import RequestSigner

# The CA and the endpoint of a cluster never change; another cluster of the same name has others.
DESCRIPTION_AGE = timedelta(minutes=5)
# EKS accepts a token for 15 minutes after it was signed, whatever its `X-Amz-Expires`
# (https://github.com/kubernetes-sigs/aws-iam-authenticator, pkg/token/token.go: presignedURLExpiration).
TOKEN_AGE = timedelta(minutes=10)
URL_SECONDS = 60
TOKEN_PREFIX, CLUSTER_HEADER = "k8s-aws-v1.", "x-k8s-aws-id"
NOT_FOUND = "ResourceNotFoundException"


class EksClient(Protocol):
    """The call of EKS that is used."""

    def describe_cluster(self, *, name: str) -> Any:  # noqa: ANN401 - as boto3 returns it
        """Return the description of a cluster."""


@dataclass(slots=True)
class EksAccess:
    """`Access` to a cluster of EKS in this account and region, as the function's own role."""

    name: str
    """The name in the setting."""
    eks_name: str
    region: str
    eks: EksClient
    signer: "RequestSigner"
    now: Callable[[], datetime]
    _description: Kept[ApiAddress] = field(init=False)
    _token: Kept[str] = field(init=False)

    def __post_init__(self) -> None:
        self._description = Kept(self._described, DESCRIPTION_AGE, self.now)
        self._token = Kept(self._signed, TOKEN_AGE, self.now)

    @property
    def remedies(self) -> Remedies:
        """The actions for an operator after a failure."""
        return Remedies(
            unreachable="the function `control` runs outside of VPCs and needs the cluster's public endpoint",
            untrusted=f"the CA is the one that EKS gives for the cluster {self.eks_name!r}",
            unauthenticated=(
                f"the cluster needs an access entry for the role of the function `control`: deploy the stage with "
                f"{self.name!r} in `kubernetes_clusters`, with the cluster's authentication mode API or "
                "API_AND_CONFIG_MAP"
            ),
            forbidden="apply the role that `signalbox split kubernetes rbac` prints",
        )

    def connection(self, *, again: bool = False) -> ApiAddress:
        """Return the address and the CA that EKS gives. Raises `ClusterGone`, also `ClusterRefused`."""
        return self._description.get(again=again)

    def token(self, *, again: bool = False) -> str:
        """Return a token for this cluster; no call is made."""
        return self._token.get(again=again)

    def _described(self) -> ApiAddress:
        subject = f"cluster {self.name!r} (EKS {self.eks_name!r} in {self.region})"
        with reading(subject):
            try:
                cluster = self.eks.describe_cluster(name=self.eks_name)["cluster"]
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") == NOT_FOUND:
                    raise ClusterGone(f"{subject} does not exist: mend the setting `kubernetes_clusters`") from error
                raise
        endpoint, encoded = cluster.get("endpoint"), cluster.get("certificateAuthority", {}).get("data")
        if not endpoint or not encoded:  # EKS gives both when it has created the cluster
            raise ClusterUnavailable(f"{subject} has no endpoint yet: its status is {cluster.get('status')}")
        try:
            return ApiAddress(endpoint, base64.b64decode(encoded).decode("ascii"))
        except ValueError as error:
            raise ClusterRefused(f"{subject}: its CA is not base64") from error

    def _signed(self) -> str:
        url = f"https://sts.{self.region}.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15"
        request: dict[str, object] = {
            "method": "GET",
            "url": url,
            "body": {},
            "headers": {CLUSTER_HEADER: self.eks_name},
            "context": {},
        }
        with reading(f"cluster {self.name!r}"):
            signed = self.signer.generate_presigned_url(
                request, operation_name="", expires_in=URL_SECONDS, region_name=self.region
            )
        return TOKEN_PREFIX + base64.urlsafe_b64encode(signed.encode()).decode().rstrip("=")
