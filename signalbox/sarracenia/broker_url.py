"""Broker URLs of sr3: a user of a stage, its AWS access key and the host of SQS."""

from dataclasses import dataclass, field
from itertools import pairwise
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from signalbox.errors import RejectedError
from signalbox.sarracenia.rights.names import InvalidUserName, UserName, parse_user_name

# sr3 3.3.1 selects drivers by the beginning of the scheme, and only those of `amqp` have exchanges.
SCHEME = "amqpsqs"
DEFAULT_STAGE = "signalbox"
SERVICES = frozenset({"sqs", "sqs-fips"})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
LOOPBACK_REGION = "us-east-1"  # of the emulator, unless the URL ends with `?region=…`
EXAMPLE = f"{SCHEME}://alice:KEY_ID%3ASECRET@sqs.ca-central-1.amazonaws.com/{DEFAULT_STAGE}"

ENCODING = "In the access key, write '/' as %2F, '+' as %2B and ':' as %3A."


class InvalidBrokerUrl(RejectedError):
    """Raised when a broker's URL lacks a valid user, access key, host or stage."""


@dataclass(frozen=True, slots=True)
class BrokerAccount:
    """A stage and one of its users, with the AWS access key that is the user's only credential."""

    user: UserName
    host: str
    stage: str = DEFAULT_STAGE
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    loopback_region: str = LOOPBACK_REGION

    @classmethod
    def parse(cls, url: str) -> "BrokerAccount":
        """Parse a URL with its key, as in sr3's `credentials.conf`. Raises `InvalidBrokerUrl`."""
        try:
            parts = urlsplit(url)
        except ValueError:  # its text quotes the URL
            raise InvalidBrokerUrl(f"broker's URL: expected a URL. {ENCODING} Example: {EXAMPLE}") from None
        key_id, _, secret = unquote(parts.password or "").partition(":")
        host = parts.netloc.rpartition("@")[2].lower()
        stage = parts.path.strip("/") or DEFAULT_STAGE
        problems = [*_problems(parts.scheme, host, stage)]
        if not (key_id and secret):
            problems.append("expected an access key's id and secret after the user, with '%3A' between them")
        user = UserName("")
        try:
            user = parse_user_name(unquote(parts.username or ""))
        except InvalidUserName:
            problems.append("expected the name of a user of the stage before the access key")
        if problems:
            raise InvalidBrokerUrl(f"broker's URL: {'; '.join(problems)}. {ENCODING} Example: {EXAMPLE}")
        region = dict(parse_qsl(parts.query)).get("region", LOOPBACK_REGION)
        return cls(user, host, stage, key_id, secret, region)

    @property
    def url(self) -> str:
        """Return the URL without the key, as in sr3's configurations."""
        return f"{SCHEME}://{self.user}@{self.host}/{self.stage}"

    @property
    def url_with_key(self) -> str:
        """Return the URL with the key, as in sr3's `credentials.conf`; it authenticates its holder as the user."""
        key = quote(f"{self.access_key_id}:{self.secret_access_key}", safe="")
        query = "" if self.region in (_region(self.host), LOOPBACK_REGION) else f"?region={self.region}"
        return f"{SCHEME}://{self.user}:{key}@{self.host}/{self.stage}{query}"

    @property
    def endpoint_url(self) -> str:
        """Return the endpoint URL of SQS: `http` for loopback hosts only, else `https`."""
        return f"{'http' if _hostname(self.host) in LOOPBACK else 'https'}://{self.host}"

    @property
    def region(self) -> str:
        """Return the region in the name of the SQS or VPC endpoint, or the region of a loopback host."""
        return _region(self.host) or self.loopback_region


def _problems(scheme: str, host: str, stage: str) -> list[str]:
    """Return the problems of a URL, and quote no part of it: a secret that is not encoded may be in any part."""
    problems = []
    if scheme != SCHEME:
        problems.append(f"expected the scheme {SCHEME!r}")
    if _hostname(host) not in LOOPBACK and _region(host) is None:
        problems.append("expected the host sqs.REGION.amazonaws.com, or a loopback host")
    if "/" in stage:
        problems.append("expected the name of a stage as the path")
    return problems


def _hostname(host: str) -> str:
    return urlsplit(f"//{host}").hostname or ""


def _region(host: str) -> str | None:
    """Return the label that follows the service's, also for VPC endpoints and private domains."""
    labels = _hostname(host).split(".")
    found = (region for service, region in pairwise(labels[:-1]) if service in SERVICES)
    return next(found, None)
