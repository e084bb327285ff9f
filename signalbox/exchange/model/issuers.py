"""Identity providers whose tokens a live exchange accepts."""

from dataclasses import dataclass
from urllib.parse import urlsplit

DEFAULT_NAME_CLAIM, DEFAULT_GROUPS_CLAIM = "sub", "groups"
DEFAULT_SKEW_SECONDS = 60
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Issuer:
    """An OpenID Connect issuer that a live exchange trusts.

    `url` is the issuer identifier, as in the claim `iss`, and `audience` a value that `aud` must contain. Users of an
    issuer with a `label` are named `NAME@LABEL`. `name_claim`, `role_claim` and `groups_claim` are the claims that
    users' names, roles and groups are read from; no `role_claim` makes all of them subscribers. Clocks may differ by
    `skew_seconds`. `client_id` is the client as which the page and the command sign in; "" is the audience. `origins`
    are the origins of the provider's endpoints that are not on the issuer's own.
    """

    url: str
    audience: str
    label: str = ""
    name_claim: str = DEFAULT_NAME_CLAIM
    role_claim: str = ""
    groups_claim: str = DEFAULT_GROUPS_CLAIM
    skew_seconds: int = DEFAULT_SKEW_SECONDS
    client_id: str = ""
    origins: tuple[str, ...] = ()

    @property
    def client(self) -> str:
        """Return the id of the client as which the page and the command sign in."""
        return self.client_id or self.audience

    @property
    def provider(self) -> str:
        """Return the name of the issuer in WAMP's `authprovider`: the label, or else the host of the URL."""
        return self.label or urlsplit(self.url).hostname or self.url
