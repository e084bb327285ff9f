"""Topic patterns of subscriptions, with WAMP's match policies exact, prefix and wildcard."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from signalbox.exchange.model.topics import RoutingKey, words_of
from signalbox.live.wamp.codec import MAXIMUM_ID
from signalbox.live.wamp.messages import SubscriptionId
from signalbox.live.wamp.uris import parse_pattern_uri

LEAST_WEIGHT, GREATEST_WEIGHT = 4, 128  # of a subscription; a pattern has 255 bytes


class MatchPolicy(StrEnum):
    """WAMP's match policies."""

    EXACT = "exact"
    PREFIX = "prefix"
    WILDCARD = "wildcard"


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """A topic URI with a match policy. Equal patterns are the same subscription."""

    match: MatchPolicy
    uri: str

    @classmethod
    def parse(cls, uri: str, match: MatchPolicy = MatchPolicy.EXACT) -> "TopicPattern":
        """Validate a pattern. Raises `InvalidUri`.

        A prefix is compared by characters: it may end within a component or after a dot, and may be empty.
        """
        return cls(match, parse_pattern_uri(uri, empty_components=match is not MatchPolicy.EXACT))

    def matches(self, topic: RoutingKey) -> bool:
        """Return whether the pattern matches a topic, which is a routing key of the exchange."""
        if self.match is MatchPolicy.EXACT:
            return topic == self.uri
        if self.match is MatchPolicy.PREFIX:
            return topic.startswith(self.uri)
        components, words = self.uri.split("."), words_of(topic)
        return len(components) == len(words) and all(
            not component or component == word for component, word in zip(components, words, strict=True)
        )

    @property
    def literal_prefix(self) -> str:
        """Return the text with which every matching topic begins."""
        components = self.uri.split(".")
        if self.match is not MatchPolicy.WILDCARD or "" not in components:
            return self.uri
        return "".join(f"{component}." for component in components[: components.index("")])

    @property
    def weight(self) -> int:
        """Return the memory of a subscription in the cache of a realm, in components of up to 460 bytes."""
        return LEAST_WEIGHT if self.match is MatchPolicy.EXACT else max(LEAST_WEIGHT, self.uri.count(".") + 1)

    @property
    def subscription_id(self) -> SubscriptionId:
        """Return the subscription id, which is the same for all subscribers and at all times.

        It is a hash of the pattern, so it is neither stored nor looked up, and stays valid when a client reconnects.
        With a million subscriptions in a realm, one realm in 18,000 has a collision.
        """
        return _subscription_id(self.match, self.uri)


@lru_cache(maxsize=10_000)  # it is computed once for each receiver of an event
def _subscription_id(match: MatchPolicy, uri: str) -> SubscriptionId:
    digest = hashlib.sha256(f"{match}\n{uri}".encode()).digest()
    return SubscriptionId(int.from_bytes(digest[:8]) % MAXIMUM_ID + 1)
