"""Access to clusters outside of EKS: a given address and CA, and the token of a service account in a secret."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from signalbox.aws.shared.kept import Kept
from signalbox.aws.splitting.kubernetes.access import ApiAddress, Remedies, reading
from signalbox.aws.splitting.kubernetes.api import ClusterRefused

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager.client import SecretsManagerClient

# A token that was replaced in the secret is used after this time, or after the cluster's first 401.
TOKEN_AGE = timedelta(minutes=5)


@dataclass(slots=True)
class ServiceAccountAccess:
    """`Access` to a cluster by its settings, with a token from AWS Secrets Manager."""

    name: str
    """The name in the setting."""
    given: ApiAddress
    token_secret: str
    """The ARN of the secret."""
    secrets: "SecretsManagerClient"
    now: Callable[[], datetime]
    _token: Kept[str] = field(init=False)

    def __post_init__(self) -> None:
        self._token = Kept(self._read, TOKEN_AGE, self.now)

    @property
    def remedies(self) -> Remedies:
        """The actions for an operator after a failure."""
        return Remedies(
            unreachable=(
                f"mend `endpoint` of {self.name!r} in `kubernetes_clusters`; the function `control` runs outside of "
                "VPCs, so it has to be a public address"
            ),
            untrusted=f"the CA is `ca` of {self.name!r} in `kubernetes_clusters`, and `endpoint` has the host's name",
            unauthenticated=f"put a valid token of the service account into the secret {self.token_secret}",
            forbidden="apply the role that `signalbox split kubernetes rbac --service-account` prints",
        )

    def connection(self, *, again: bool = False) -> ApiAddress:  # noqa: ARG002 - the setting has one answer
        """Return the given address and CA."""
        return self.given

    def token(self, *, again: bool = False) -> str:
        """Return the token of the secret; `again` reads it anew. Raises `ClusterRefused`, also for an empty secret."""
        return self._token.get(again=again)

    def _read(self) -> str:
        subject = f"cluster {self.name!r}: the secret {self.token_secret}"
        with reading(subject):
            secret = self.secrets.get_secret_value(SecretId=self.token_secret).get("SecretString", "")
        token = _token_in(secret)
        # A header takes no other characters, and an error about them would show the token.
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ClusterRefused(f"{subject} holds no token: its text is the token, or JSON with the key `token`")
        return token


def _token_in(secret: str) -> str:
    text = secret.strip()
    if not text.startswith("{"):
        return text
    try:
        found = json.loads(text)
    except ValueError:
        return ""
    return str(found.get("token", "")).strip()
