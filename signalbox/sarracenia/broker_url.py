"""The URL by which sr3 knows a stage: whose key is used, and where."""

from dataclasses import dataclass, field
from itertools import pairwise
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from signalbox.errors import RejectedError
from signalbox.sarracenia.rights.names import InvalidUserName, UserName, parse_user_name

# sr3 3.3.1 knows brokers by the first letters of their scheme, and only those of `amqp` have exchanges.
SCHEME = "amqpsqs"
DEFAULT_STAGE = "signalbox"
SERVICES = frozenset({"sqs", "sqs-fips"})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
LOOPBACK_REGION = "us-east-1"  # of the emulator, unless the URL ends with `?region=…`: its host has no room for one
EXAMPLE = f"{SCHEME}://alice:KEY_ID%3ASECRET@sqs.ca-central-1.amazonaws.com/{DEFAULT_STAGE}"


class InvalidBrokerUrl(RejectedError):
    """Raised when a broker's URL does not say who asks, with which access key, or where."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A stage as one user sees it. The key is an access key of AWS, which is all that the user has of it."""

    user: UserName
    host: str
    stage: str = DEFAULT_STAGE
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    loopback_region: str = LOOPBACK_REGION

    @classmethod
    def parse(cls, url: str) -> "Broker":
        """Return the broker of a URL with its key, as it stands in `credentials.conf`. Raises `InvalidBrokerUrl`."""
        parts = urlsplit(url)
        key_id, _, secret = unquote(parts.password or "").partition(":")
        host = parts.netloc.rpartition("@")[2].lower()
        stage = parts.path.strip("/") or DEFAULT_STAGE
        problems = [*_problems(parts.scheme, host, stage)]
        if not (key_id and secret):
            # The URL itself holds a secret.
            problems.append("expected an access key's id and secret after the user, with '%3A' between them")
        user = UserName("")
        try:
            user = parse_user_name(unquote(parts.username or ""))
        except InvalidUserName as error:
            problems.append(str(error))
        if problems:
            raise InvalidBrokerUrl(f"broker's URL: {'; '.join(problems)}. It is like {EXAMPLE}")
        region = dict(parse_qsl(parts.query)).get("region", LOOPBACK_REGION)
        return cls(user, host, stage, key_id, secret, region)

    @property
    def url(self) -> str:
        """Return the URL without the key, as it stands in configurations."""
        return f"{SCHEME}://{self.user}@{self.host}/{self.stage}"

    @property
    def url_with_key(self) -> str:
        """Return the URL as it stands in `credentials.conf`: whoever reads it is this user."""
        key = quote(f"{self.access_key_id}:{self.secret_access_key}", safe="")
        told = "" if self.region in (_region(self.host), LOOPBACK_REGION) else f"?region={self.region}"
        return f"{SCHEME}://{self.user}:{key}@{self.host}/{self.stage}{told}"

    @property
    def endpoint_url(self) -> str:
        """Return where calls of SQS go: in clear text never further than to this machine."""
        return f"{'http' if _hostname(self.host) in LOOPBACK else 'https'}://{self.host}"

    @property
    def region(self) -> str:
        """Return the region in the host's name: that of SQS, or that of a VPC's own way to it."""
        return _region(self.host) or self.loopback_region


def _problems(scheme: str, host: str, stage: str) -> list[str]:
    problems = []
    if scheme != SCHEME:
        problems.append(f"expected the scheme {SCHEME!r}, not {scheme[:80]!r}")
    if _hostname(host) not in LOOPBACK and _region(host) is None:
        problems.append(f"expected the host sqs.REGION.amazonaws.com, or this machine's, not {host[:80]!r}")
    if "/" in stage:
        problems.append(f"expected the name of a stage as the path, not {stage[:80]!r}")
    return problems


def _hostname(host: str) -> str:
    return urlsplit(f"//{host}").hostname or ""


def _region(host: str) -> str | None:
    """Return the label after that of the service, also behind a VPC's endpoint or on a network of its own."""
    labels = _hostname(host).split(".")
    found = (region for service, region in pairwise(labels[:-1]) if service in SERVICES)
    return next(found, None)
