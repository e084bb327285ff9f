"""Messages that the stage sends for somebody: published to an exchange, or put into a queue again."""

from collections.abc import Mapping
from dataclasses import dataclass

from signalbox.exchange.topics import RoutingKey
from signalbox.sarracenia.names import ExchangeName, UserName


@dataclass(frozen=True, slots=True)
class Publication:
    """A message on its way to an exchange; `request_id` is the same when it is asked for twice."""

    exchange: ExchangeName
    key: RoutingKey
    body: str
    headers: Mapping[str, str]
    publisher: UserName | None
    request_id: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """A message that was published before, as it is to be delivered again; `message_id` is the one of old."""

    exchange: ExchangeName
    key: RoutingKey
    body: str
    headers: Mapping[str, str]
    message_id: str
    publisher: str
    request_id: str
