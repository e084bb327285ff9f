"""The setting `kubernetes_clusters`: a map of names to clusters of EKS and to other clusters."""

import base64
import binascii
import json
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

NAME = r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?"
# https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html: name
EKS_NAME = r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}"
ENDPOINT = r"https://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::\d{1,5})?(?:/[A-Za-z0-9._~/-]*)?"
STORED = r"arn:aws:secretsmanager:[a-z0-9-]+:\d{12}:secret:[A-Za-z0-9/_+=.@-]+"
KEY = r"arn:aws:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+"
FORMS = {
    "eks": EKS_NAME,
    "endpoint": ENDPOINT,
    "token_secret": STORED,
    "token_secret_key": KEY,
}
OTHER, OPTIONAL = ("endpoint", "ca", "token_secret"), "token_secret_key"
PEM_MARK = "-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class KubernetesClusters:
    """Clusters by name, in the order of the setting, with CAs in PEM."""

    clusters: tuple[tuple[str, Mapping[str, str]], ...]

    @classmethod
    def read(cls, given: object) -> "KubernetesClusters":
        """Return the clusters of a JSON object, or of its text. Raises `ValueError` with all problems."""
        clusters = _parsed(given)
        if problems := [*_problems(clusters)]:
            raise ValueError("; ".join(problems))
        return cls(tuple((str(name), _read(cluster)) for name, cluster in clusters.items()))

    @property
    def eks(self) -> Mapping[str, str]:
        """The EKS names of the clusters that have one, by their names here."""
        return {name: cluster["eks"] for name, cluster in self.clusters if "eks" in cluster}

    @property
    def token_secrets(self) -> tuple[str, ...]:
        """The ARNs of the secrets with tokens."""
        return self._every("token_secret")

    @property
    def token_secret_keys(self) -> tuple[str, ...]:
        """The ARNs of the customer-managed keys of those secrets."""
        return self._every("token_secret_key")

    @property
    def variable(self) -> str:
        """The environment variable of the function `control`."""
        read = {name: {key: cluster[key] for key in cluster if key != OPTIONAL} for name, cluster in self.clusters}
        return json.dumps(read, separators=(",", ":"))

    def _every(self, key: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cluster[key] for _, cluster in self.clusters if key in cluster))


def _parsed(given: object) -> Mapping[object, object]:
    if isinstance(given, str):
        try:
            given = json.loads(given, object_pairs_hook=_named_once)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"must be a JSON object of names and clusters: {error}") from error
    if not isinstance(given, Mapping):
        raise ValueError(f"must be a JSON object of names and clusters, not {str(given)[:100]!r}")  # noqa: TRY004
    return given


def _named_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"{', '.join(found)}: a name is given twice")
    return found


def _problems(clusters: Mapping[object, object]) -> Iterator[str]:
    for name, cluster in clusters.items():
        if not isinstance(name, str) or not re.fullmatch(NAME, name):
            yield f"has a cluster {name!r}: a name must match {NAME}"
        if isinstance(cluster, Mapping):
            yield from (f"at {name!r}: {problem}" for problem in _problems_of(cluster))
        else:
            yield f"at {name!r}: must be an object, not {str(cluster)[:100]!r}"
    yield from _twice(clusters)


def _problems_of(cluster: Mapping[object, object]) -> Iterator[str]:
    needed = ("eks",) if "eks" in cluster else OTHER
    allowed = needed if "eks" in cluster else (*needed, OPTIONAL)
    if unknown := sorted(str(key) for key in cluster if key not in allowed):
        yield f"{', '.join(unknown)} cannot be there: a cluster has `eks`, or {_listed(OTHER)} and `{OPTIONAL}`"
    if missing := [key for key in needed if key not in cluster]:
        yield f"{_listed(missing)} missing: a cluster that is not of EKS has {_listed(OTHER)}"
    for key in allowed:
        if key in cluster:
            yield from _problems_of_value(key, cluster[key])


def _problems_of_value(key: str, value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"`{key}` must be text, not {str(value)[:100]!r}"
    elif key == "ca":
        yield from _problems_of_ca(value)
    elif not re.fullmatch(FORMS[key], value):
        yield f"`{key}` must match {FORMS[key]}, not {value[:100]!r}"


def _problems_of_ca(value: str) -> Iterator[str]:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=_pem(value))
    except (ssl.SSLError, ValueError, TypeError):
        yield "`ca` must be certificates in PEM, or their base64 as in a kubeconfig's `certificate-authority-data`"


def _pem(value: str) -> str:
    if PEM_MARK in value:
        return value
    try:
        return base64.b64decode(value, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _twice(clusters: Mapping[object, object]) -> Iterator[str]:
    # One role has one access entry in a cluster.
    named = [cluster.get("eks") for cluster in clusters.values() if isinstance(cluster, Mapping) and "eks" in cluster]
    for name in dict.fromkeys(name for name in named if named.count(name) > 1):
        yield f"names the EKS cluster {name!r} twice"


def _read(cluster: object) -> Mapping[str, str]:
    known = dict(cluster) if isinstance(cluster, Mapping) else {}
    return {key: _pem(value) if key == "ca" else value for key, value in known.items()}


def _listed(keys: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys)
