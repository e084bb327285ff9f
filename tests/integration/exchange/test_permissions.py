"""The permissions of users on the deployed stage: every role, operation and name."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.aws.exchange.users import ExchangeUsers, register
from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient, user_client
from signalbox.control.protocol import CommandRejected
from signalbox.sarracenia.rights.names import UserName, parse_queue_name
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

TESS = UserName("tess")
OWN_EXCHANGES, OTHERS_EXCHANGES = {"xs_tess", "xs_tess_images"}, {"xs_tess2", "xs_rita"}
PUBLIC = "xtest_public"
TOPIC = {"topic": {"DataType": "String", "StringValue": "a"}}
EXCHANGES = {*OWN_EXCHANGES, *OTHERS_EXCHANGES, PUBLIC}
OWN_QUEUES, OTHERS_QUEUES = {"q_tess", "q_tess.subscribe.weather.tess_host_1"}, {"q_tess2.subscribe", "q_rita"}
QUEUES = {*OWN_QUEUES, *OTHERS_QUEUES}
ALL = {
    "declare exchange": EXCHANGES,
    "declare queue": QUEUES,
    "publish": EXCHANGES,
    "publish by command": EXCHANGES,
    "consume": QUEUES,
    "give a sign of life": QUEUES,
    "bind from": EXCHANGES,
    "bind to": QUEUES,
}
SOURCE = {
    "declare exchange": OWN_EXCHANGES,
    "declare queue": OWN_QUEUES,
    "publish": OWN_EXCHANGES,
    "publish by command": OWN_EXCHANGES,
    "consume": OWN_QUEUES,
    "give a sign of life": OWN_QUEUES,
    "bind from": {*OWN_EXCHANGES, PUBLIC},
    "bind to": OWN_QUEUES,
}
SUBSCRIBER = SOURCE | {"declare exchange": set(), "publish": {"xs_tess"}, "publish by command": {"xs_tess"}}
# Sarracenia's own rule: `tess` owns the resources of `tess2`, except that subscribers cannot publish there.
MORE = {"xs_tess2", "q_tess2.subscribe"}
LOOSE_SOURCE = {what: names | (MORE & ALL[what]) for what, names in SOURCE.items()}
LOOSE_SUBSCRIBER = {
    what: names if what in ("declare exchange", "publish", "publish by command") else names | (MORE & ALL[what])
    for what, names in SUBSCRIBER.items()
}


@dataclass(frozen=True, slots=True)
class Actor:
    """A user as programs act for one: commands by the client, messages with the user's own key."""

    sqs: Any
    client: ExchangeClient
    url_prefix: str

    def operations(self) -> dict[str, Callable[[str], object]]:
        """Return each operation on a name; none changes a resource that another depends on."""
        own_queue, own_exchange = "q_tess", "xs_tess"
        ask = self.client.ask
        return {
            "declare exchange": lambda name: ask("declare_exchange", {"exchange": name}),
            "declare queue": lambda name: ask("declare_queue", {"queue": name}),
            "publish": lambda name: self.sqs.send_message(
                QueueUrl=self._url(name), MessageBody="b", MessageAttributes=TOPIC
            ),
            "publish by command": lambda name: ask("publish", {"exchange": name, "routing_key": "a", "body": "b"}),
            "consume": lambda name: self.sqs.receive_message(QueueUrl=self._url(name)),
            "give a sign of life": lambda name: ask("consuming", {"queue": name}),
            "bind from": lambda name: ask("bind", {"exchange": name, "queue": own_queue, "pattern": "never"}),
            "bind to": lambda name: ask("bind", {"exchange": own_exchange, "queue": name, "pattern": "never"}),
        }

    def _url(self, name: str) -> str:
        return f"{self.url_prefix}{self.client.names.queue(name)}"


@pytest.fixture(scope="module")
def declared(deployment: Deployment) -> Iterator[str]:
    """Declare exchanges and queues of several users; return a queue's URL up to its name."""
    administrator = client_of(deployment)
    for name in EXCHANGES:
        administrator.declare_exchange(name)
    for name in QUEUES:
        administrator.declare_queue(name)
    yield administrator.url_prefix
    for name in EXCHANGES:
        administrator.delete_exchange(name, force=True)
    for name in QUEUES:
        administrator.delete_queue(parse_queue_name(name))


@dataclass(frozen=True, slots=True)
class Users:
    """Users as `signalbox user` creates them."""

    identities: ExchangeUsers
    records: DynamoUsers
    deployment: Deployment
    name: UserName = TESS

    def become(self, role: Role, ownership: Ownership = Ownership.STRICT) -> None:
        """Create the user, or change the user's role."""
        register(self.identities, self.records, self.name, role=role, ownership=ownership, now=datetime.now(UTC))

    def remove(self) -> None:
        self.identities.remove(self.name)
        self.records.remove(self.name)

    def acting(self, url_prefix: str) -> Actor:
        key = self.identities.new_key(self.name)
        session = self.deployment.session_of(ClientCredentials(key.access_key_id, key.secret_access_key))
        sqs = session.client("sqs")
        return Actor(sqs, user_client(sqs, self.name, stage="signalbox"), url_prefix)


@pytest.fixture(scope="module")
def users(deployment: Deployment) -> Iterator[Users]:
    session = deployment.session()
    table = DynamoTable(session.client("dynamodb"), deployment.outputs["ExchangeTable"])
    users = Users(ExchangeUsers.of(session, deployment.outputs), DynamoUsers(table), deployment)
    users.become(Role.SUBSCRIBER)
    yield users
    users.remove()


@pytest.fixture(scope="module")
def actor(users: Users, declared: str) -> Actor:
    return users.acting(declared)


def is_permitted(operation: Callable[[str], object], name: str) -> bool:
    """Return whether an operation was permitted; raise any error that is not a denial by name."""
    try:
        operation(name)
    except CommandRejected as refusal:
        if "user 'tess'" not in str(refusal) or " may not " not in str(refusal):
            raise
        return False
    except ClientError as error:
        if error.response["Error"]["Code"] != "AccessDenied":
            raise
        return False
    return True


@pytest.mark.parametrize(
    ("role", "ownership", "expected"),
    [
        pytest.param(Role.ADMIN, Ownership.STRICT, ALL, id="admin"),
        pytest.param(Role.FEEDER, Ownership.STRICT, ALL, id="feeder"),
        pytest.param(Role.SOURCE, Ownership.STRICT, SOURCE, id="source"),
        pytest.param(Role.SUBSCRIBER, Ownership.STRICT, SUBSCRIBER, id="subscriber"),
        pytest.param(Role.SOURCE, Ownership.LOOSE, LOOSE_SOURCE, id="source-loose"),
        pytest.param(Role.SUBSCRIBER, Ownership.LOOSE, LOOSE_SUBSCRIBER, id="subscriber-loose"),
    ],
)
def test_a_user_may_do_what_the_role_says_to_what_the_name_says(
    users: Users, actor: Actor, role: Role, ownership: Ownership, expected: dict[str, set[str]]
) -> None:
    users.become(role, ownership)

    permitted = {
        what: {name for name in ALL[what] if is_permitted(operation, name)}
        for what, operation in actor.operations().items()
    }

    assert permitted == expected


def test_not_even_a_users_administrator_touches_what_is_not_an_exchange_or_a_queue(
    users: Users, actor: Actor, deployment: Deployment
) -> None:
    users.become(Role.ADMIN)
    own = actor.client.names.control_queue(TESS)
    control = deployment.outputs["ExchangeControlQueueUrl"]
    prefix = control.rpartition("/")[0]
    arns = deployment.outputs["BrokerQueueArn"].rpartition(":")[0]
    redrive = json.dumps({"deadLetterTargetArn": f"{arns}:{control.rpartition('/')[2]}", "maxReceiveCount": 1})
    calls: dict[str, Callable[[], object]] = {
        "send a command as an administrator": lambda: actor.sqs.send_message(
            QueueUrl=control, MessageBody='{"command": "whoami", "id": "1"}'
        ),
        "read commands": lambda: actor.sqs.receive_message(QueueUrl=f"{prefix}/{own}"),
        "dead-letter": lambda: actor.sqs.send_message(
            QueueUrl=deployment.outputs["ExchangeDeadLetterQueueUrl"], MessageBody="x"
        ),
        "make a queue": lambda: actor.sqs.create_queue(QueueName="q_tess_by_hand"),
        "make a reply queue": lambda: actor.sqs.create_queue(
            QueueName=f"{actor.client.names.reply_queue(TESS)}-2", Attributes={"RedrivePolicy": redrive}
        ),
        "change the own reply queue": lambda: actor.sqs.set_queue_attributes(
            QueueUrl=f"{prefix}/{actor.client.names.reply_queue(TESS)}", Attributes={"RedrivePolicy": redrive}
        ),
        "read another user's replies": lambda: actor.sqs.receive_message(
            QueueUrl=deployment.outputs["ExchangeReplyQueueUrl"]
        ),
        "list queues": actor.sqs.list_queues,
        "take offers": lambda: actor.sqs.receive_message(QueueUrl=deployment.outputs["BrokerQueueUrl"]),
    }

    denied = set()
    for what, call in calls.items():
        try:
            call()
        except ClientError as error:
            if error.response["Error"]["Code"] == "AccessDenied":
                denied.add(what)

    assert denied == calls.keys()


def test_a_message_has_the_name_of_its_publisher(
    users: Users, actor: Actor, declared: str, deployment: Deployment
) -> None:
    users.become(Role.SOURCE)
    claim = {**TOPIC, "publisher": {"DataType": "String", "StringValue": "rita"}}
    administrator = client_of(deployment)
    administrator.bind("xs_tess", "q_tess2.subscribe", "#")
    message = {"exchange": "xs_tess", "routing_key": "a", "headers": {"publisher": "rita"}}
    actor.client.ask("publish", {**message, "body": "by command"})
    administrator.ask("publish", {**message, "body": "by an administrator's command"})
    actor.sqs.send_message(QueueUrl=f"{declared}xs_tess", MessageBody="by herself", MessageAttributes=claim)

    publishers: dict[str, str] = {}
    with administrator.consumer("q_tess2.subscribe") as consumer:

        def all_of_them() -> bool:
            for one in consumer.receive(wait_seconds=1):
                consumer.ack(one)
                assert one.delivered.headers == {"publisher": "rita"}
                publishers[one.delivered.body] = one.delivered.publisher
            return len(publishers) == 3

        wait_for(all_of_them, f"three messages, only {publishers}")

    assert publishers == {"by command": "tess", "by an administrator's command": "_", "by herself": "tess"}


def test_a_removed_user_may_do_nothing(users: Users, declared: str) -> None:
    gone = replace(users, name=UserName("tess3"))
    gone.become(Role.FEEDER)
    actor = gone.acting(declared)
    actor.operations()["publish"]("xs_tess")

    gone.remove()

    for what, name in (("publish", "xs_tess"), ("consume", "q_tess"), ("declare queue", "q_tess")):
        with pytest.raises(ClientError, match="InvalidClientTokenId"):
            actor.operations()[what](name)
