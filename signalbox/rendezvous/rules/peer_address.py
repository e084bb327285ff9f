"""The address of a stage for its peers: the text that a stage shows, and that the setting of the others contains."""

import re
from collections import Counter
from dataclasses import astuple, dataclass

from signalbox.errors import RejectedError

FORM = "region:stage:table:key id:broker queue:client queue prefix"
PART = r"[A-Za-z0-9._-]+"
PATTERN = ":".join([PART] * len(FORM.split(":")))


class InvalidPeer(RejectedError):
    """Raised when a text is not the address of a peer."""


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """The names of the resources that the functions of a peer use, all in the same account."""

    region: str
    stage: str
    table: str
    key_id: str
    """The id of the key of the table."""
    broker_queue: str
    client_queue_prefix: str

    @classmethod
    def parse(cls, text: str) -> "PeerAddress":
        """Return the address that a stage shows. Raises `InvalidPeer`."""
        if not re.fullmatch(PATTERN, text):
            raise InvalidPeer(f"{text[:200]!r} is no peer: expected {FORM}")
        return cls(*text.split(":"))

    def __str__(self) -> str:
        return ":".join(astuple(self))

    def queue_url(self, url: str, *, region: str) -> str:
        """Return the URL of the peer's broker queue, given the URL of the one in this `region` of the same account."""
        account = url.rpartition("/")[0].replace(f".{region}.", f".{self.region}.")
        return f"{account}/{self.broker_queue}"


def parse_peers(text: str) -> tuple[PeerAddress, ...]:
    """Return the addresses of a comma-separated list. Raises `InvalidPeer`, also for two peers in one region."""
    peers = tuple(PeerAddress.parse(part) for part in text.split(",") if part)
    regions = Counter(peer.region for peer in peers)
    repeated = [region for region, count in regions.items() if count > 1]
    if repeated:
        raise InvalidPeer(f"several peers are in {repeated[0]!r}; expected one for each region")
    return peers
