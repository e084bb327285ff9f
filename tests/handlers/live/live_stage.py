"""A stage for the handlers of live: AWS in this process, a realm with a user, and clients."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from lambdas.exchange import wiring as exchange_wiring
from lambdas.live import arvados, connect, overview, overview_wiring, receive, session, session_wiring, wiring
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoUsers
from signalbox.aws.live.account_items import credentials_item, grants_item
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings, User
from signalbox.live.rights.grants import Grant
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role
from tests.handlers.environment import (
    OVERFLOW,
    STREAM,
    Queues,
    clear_caches,
    create_history_stream,
    new_instances,
    written_events,
)
from tests.handlers.recorded_events import Event, batch, record_of

REALM = ExchangeName("xs_trial.fifo")
PREFIX = "stage-"
NAMES = StageNames("signalbox", PREFIX)
INBOX, OUTBOX, TIMERS = "signalbox-live-inbox.fifo", "signalbox-live-outbox.fifo", "signalbox-live-timers"
OVERVIEW = "signalbox-live-overview.fifo"
ORDERED_DEAD = "signalbox-live-dead.fifo"
HEADERS = {"Sec-WebSocket-Protocol": "wamp.2.json,wamp.2.msgpack", "User-Agent": "Test/1"}
CONNECT = {"routeKey": "$connect", "eventType": "CONNECT", "identity": {"sourceIp": "127.0.0.1"}}


MODULES = (exchange_wiring, wiring, arvados, connect, receive, session, session_wiring, overview, overview_wiring)


@dataclass(kw_only=True)
class LiveStage(Queues):
    s3: Any
    live: Any
    exchanges: Any

    def declare(self) -> None:
        """Make a realm, and a user with all rights to the topics `trial…`."""
        now, user = datetime.now(UTC), UserName("source")
        DynamoExchanges(self.exchanges).create(ExchangeRecord(REALM, None, now, live=LiveSettings()))
        DynamoUsers(self.exchanges).put(User(user, Role.SOURCE, Ownership.STRICT, now, "AIDASOURCE"))
        grants = [Grant(right, TopicPattern(MatchPolicy.PREFIX, "trial")) for right in (Right.READ, Right.WRITE)]
        self.live.put_item(Item=grants_item(REALM, user, grants, version=1))
        self.live.put_item(Item=credentials_item(user, StoredSecret.of("a-secret", salt="salt", with_key=False)))
        self.make(NAMES.queue(REALM))

    def connect(
        self, connection: str, headers: dict[str, str] | None = None, *, token: str | None = None, **context: object
    ) -> Event:
        given = {
            "connectionId": connection,
            "requestId": uuid.uuid4().hex,
            "requestTimeEpoch": round(datetime.now(UTC).timestamp() * 1000),
        }
        # API Gateway sends null for a request without a query.
        query = None if token is None else {"api_token": token}
        asked = {"headers": HEADERS if headers is None else headers, "queryStringParameters": query}
        return connect.handler(asked | {"requestContext": CONNECT | given | context}, None)

    def send(self, connection: str, body: str, *, queue: str = INBOX) -> None:
        """Send a message of a connection, which is its group."""
        ids = {"MessageGroupId": connection, "MessageDeduplicationId": uuid.uuid4().hex}
        self.sqs.send_message(QueueUrl=self.urls[queue], MessageBody=body, **ids)

    def say(self, connection: str, *message: object) -> list[Any]:
        """Send a message and process it, with the calls that are passed on; return the new items of the outbox."""
        body = {"body": json.dumps(message), "isBase64Encoded": False}
        context = {"routeKey": "$default", "connectionId": connection, "requestId": uuid.uuid4().hex}
        assert receive.handler(body | {"requestContext": context}, None) == {"statusCode": 200}
        assert self.process() == []
        assert self.process(OVERVIEW) == []
        return self.replies(connection)

    def process(self, name: str = INBOX, context: object = None, *, wait: int = 0) -> list[str]:
        """Call the function of a queue with its messages; delete those that the function has not reported."""
        records = [record_of(message, name) for message in self.taken(name, keep=True, wait=wait)]
        if not records:
            return []
        handler = overview.handler if name == OVERVIEW else session.handler
        return self.delete_handled(name, records, handler(batch(*records), context))

    def replies(self, connection: str) -> list[Any]:
        documents = [json.loads(message["Body"]) for message in self.taken(OUTBOX)]
        return [json.loads(one["message"]) if one["kind"] == "reply" else one["kind"] for one in documents]

    def taken(self, name: str, *, keep: bool = False, wait: int = 0) -> list[dict[str, Any]]:
        found = self.page(name, wait=wait)
        for message in () if keep else found:
            self.delete(name, message["ReceiptHandle"])
        return found

    def join(self, connection: str = "c1") -> int:
        """Connect and join; return the session's id."""
        assert self.connect(connection)["statusCode"] == 200
        assert self.say(connection, 1, REALM, {"authid": "source", "authmethods": ["ticket"]}) == [[4, "ticket", {}]]
        ((kind, session_id, _),) = self.say(connection, 5, "a-secret", {})
        assert kind == 2
        return int(session_id)

    def history(self) -> list[tuple[str, str]]:
        return [(row["kind"], row["outcome"]) for row in written_events(self.s3)]


def forget_everything() -> None:
    """Make every function instance cold."""
    clear_caches(*MODULES)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, sqs, live_table, exchange_table) -> Iterator[LiveStage]:
    found = LiveStage(sqs=sqs, s3=create_history_stream(), live=live_table, exchanges=exchange_table)
    settings = {
        "STAGE": "signalbox",
        "LIVE_TABLE": "Live",
        "EXCHANGE_TABLE": "Exchanges",
        "RENDEZVOUS_TABLE": "Rendezvous",
        "SPLIT_TABLE": "Splits",
        "HISTORY_BUCKET": "history",
        "EXCHANGE_PREFIX": PREFIX,
        "HISTORY_STREAM": STREAM,
        "HISTORY_OVERFLOW_URL": OVERFLOW,
        "LIVE_INBOX_URL": found.make(INBOX),
        "LIVE_OUTBOX_URL": found.make(OUTBOX),
        "LIVE_TIMERS_URL": found.make(TIMERS),
        "LIVE_OVERVIEW_URL": found.make(OVERVIEW),
        "LIVE_ORDERED_DEAD_LETTER_QUEUE_URL": found.make(ORDERED_DEAD),
        "ACTIVITY_SOURCES": json.dumps(
            {
                **{
                    name: {"queues": [], "functions": []} for name in ("rendezvous", "splitting", "exchange", "history")
                },
                "live": {"queues": [INBOX], "functions": ["session"]},
            }
        ),
    }
    with new_instances(monkeypatch, settings, *MODULES):
        found.declare()
        yield found
