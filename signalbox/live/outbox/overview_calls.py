"""Calls that the function `session` passes to the function `overview`, and the messages that carry them."""

import json
from dataclasses import dataclass
from datetime import datetime

from signalbox.errors import RejectedError
from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.log.documents import FORMS
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.items import ItemId
from signalbox.live.wamp.messages import Payload, RequestId
from signalbox.sarracenia.rights.names import ExchangeName, UserName


class InvalidOverviewCall(RejectedError):
    """Raised for a message of the overview queue that is not a call that `session` sent."""


@dataclass(frozen=True, slots=True)
class OverviewCall:
    """A permitted call of an overview procedure; `item_id` is the id of its reply in the caller's outbox.

    `token` is the identity of a token's user. The session of a call that `is_anonymous` joined without a secret.
    """

    connection: ConnectionId
    item_id: ItemId
    realm: ExchangeName
    user: UserName
    at: datetime
    request: RequestId
    procedure: str
    payload: Payload
    token: TokenIdentity | None = None
    is_anonymous: bool = False

    @classmethod
    def parse(cls, body: str) -> "OverviewCall":
        """Return the call in a message's body. Raises `InvalidOverviewCall`."""
        try:
            return CALL.read(json.loads(body))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidOverviewCall(f"a message of {len(body)} characters is not a call: {error!r}") from error

    def body(self) -> str:
        """Return the body of the message that carries the call."""
        return json.dumps(CALL.write(self), separators=(",", ":"))


CALL = FORMS.record(
    OverviewCall,
    names={"item_id": "item", "is_anonymous": "anonymous"},
    sparse=["token", "is_anonymous"],
    flat=["payload"],
)
