"""The clusters of a stage, as the environment of the function `control` has them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from signalbox.aws.splitting.kubernetes.access import ApiAddress


@dataclass(frozen=True, slots=True)
class EksSetting:
    """A cluster of EKS in the stage's account and region, by its name there."""

    eks_name: str


@dataclass(frozen=True, slots=True)
class ServiceAccountSetting:
    """Any other cluster, and the ARN of the secret with the token of a service account."""

    connection: ApiAddress
    token_secret: str


ClusterSetting = EksSetting | ServiceAccountSetting


def parse_clusters(text: str) -> Mapping[str, ClusterSetting]:
    """Return the clusters of the variable `KUBERNETES_CLUSTERS`, by name, in the order of the setting."""
    return {name: _parsed(setting) for name, setting in json.loads(text).items()}


def _parsed(setting: Mapping[str, str]) -> ClusterSetting:
    if "eks" in setting:
        return EksSetting(setting["eks"])
    return ServiceAccountSetting(ApiAddress(setting["endpoint"], setting["ca"]), setting["token_secret"])
