"""The clusters of a stage: one client for each, made when it is first used."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.model import ServiceId
from botocore.signers import RequestSigner

from signalbox.aws.splitting.kubernetes.access import ClusterAccess
from signalbox.aws.splitting.kubernetes.api import ClusterRefused, ClusterUnavailable, KubernetesApi
from signalbox.aws.splitting.kubernetes.client import ClusterClient
from signalbox.aws.splitting.kubernetes.eks import EksAccess
from signalbox.aws.splitting.kubernetes.service_account import ServiceAccountAccess
from signalbox.aws.splitting.kubernetes.settings import ClusterSetting, ServiceAccountSetting

if TYPE_CHECKING:
    import boto3


@dataclass(slots=True)
class Clusters:
    """The clients of the clusters in the setting `kubernetes_clusters`, by name."""

    settings: Mapping[str, ClusterSetting]
    session: "boto3.Session"
    now: Callable[[], datetime]
    _clients: dict[str, KubernetesApi] = field(default_factory=dict, init=False)

    def api_of(self, cluster: str) -> KubernetesApi:
        """Return the client of a cluster. Raises `ClusterRefused` for one that is not in the setting."""
        setting = self.settings.get(cluster)
        if setting is None:
            known = ", ".join(self.settings) or "none"
            raise ClusterRefused(
                f"cluster {cluster!r} is not in the setting `kubernetes_clusters` of this stage, which has: {known}"
            )
        if cluster not in self._clients:
            self._clients[cluster] = ClusterClient(cluster, self._access(cluster, setting))
        return self._clients[cluster]

    def _access(self, name: str, setting: ClusterSetting) -> ClusterAccess:
        if isinstance(setting, ServiceAccountSetting):
            secrets = self.session.client("secretsmanager")
            return ServiceAccountAccess(name, setting.connection, setting.token_secret, secrets, self.now)
        region = self.session.region_name
        return EksAccess(
            name, setting.eks_name, region, self.session.client("eks"), _signer(self.session, region), self.now
        )


def _signer(session: "boto3.Session", region: str) -> RequestSigner:
    """Return the signer of STS requests; a client of STS, which makes calls, is not needed."""
    credentials = session.get_credentials()
    if credentials is None:
        raise ClusterUnavailable("no AWS credentials to sign a token with")
    return RequestSigner(ServiceId("STS"), region, "sts", "v4", credentials, session.events)
