"""What a client can subscribe to: a topic, every topic that begins so, or every topic of such components."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from signalbox.exchange.model.topics import RoutingKey, words_of
from signalbox.live.wamp.codec import MAXIMUM_ID
from signalbox.live.wamp.messages import SubscriptionId
from signalbox.live.wamp.uris import parse_pattern_uri


class MatchPolicy(StrEnum):
    """WAMP's matching policies."""

    EXACT = "exact"
    PREFIX = "prefix"
    WILDCARD = "wildcard"


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """What is subscribed to. Two subscriptions are the same when these are."""

    match: MatchPolicy
    uri: str

    @classmethod
    def parse(cls, uri: str, match: MatchPolicy = MatchPolicy.EXACT) -> "TopicPattern":
        """Return what a client may subscribe to. Raises `InvalidUri`.

        A prefix may end in the midst of a component, behind a dot, or be empty: it is compared by characters.
        """
        return cls(match, parse_pattern_uri(uri, empty_components=match is not MatchPolicy.EXACT))

    def matches(self, topic: RoutingKey) -> bool:
        """Say whether events of a topic, or of any other routing key of the exchange, are wanted."""
        if self.match is MatchPolicy.EXACT:
            return topic == self.uri
        if self.match is MatchPolicy.PREFIX:
            return topic.startswith(self.uri)
        wanted, words = self.uri.split("."), words_of(topic)
        return len(wanted) == len(words) and all(
            not component or component == word for component, word in zip(wanted, words, strict=True)
        )

    @property
    def literal_prefix(self) -> str:
        """Return the text with which all topics begin that the pattern can match."""
        components = self.uri.split(".")
        if self.match is not MatchPolicy.WILDCARD or "" not in components:
            return self.uri
        return "".join(f"{component}." for component in components[: components.index("")])

    @property
    def subscription_id(self) -> SubscriptionId:
        """Return the id of the subscription, the same for all its subscribers and at all times.

        It is told by the pattern alone, so nothing has to be asked or kept for it, and a client that comes back
        knows it already. Of a million subscriptions in a realm, two meet once in 18,000 realms.
        """
        digest = hashlib.sha256(f"{self.match}\n{self.uri}".encode()).digest()
        return SubscriptionId(int.from_bytes(digest[:8]) % MAXIMUM_ID + 1)
