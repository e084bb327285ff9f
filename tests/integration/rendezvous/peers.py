"""The participants of rendezvous tests: clients, proxies, and the administrator of the stage."""

import http.client
import json
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.config import Config as ClientConfig

from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.aws.rendezvous.offers import DynamoOffers
from signalbox.aws.rendezvous.paces import DynamoPaces
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.expressions import Delete
from signalbox.clients.deployment import Deployment, require_local
from signalbox.clients.rendezvous.client import new_client_id
from signalbox.clients.rendezvous.simulator import (
    ProxySimulator,
    ServeResult,
    new_session_id,
    sample_answer,
    sample_offer,
)
from signalbox.rendezvous.model.pace import ProxyGroup, proxy_group
from signalbox.rendezvous.model.states import OPEN_STATES, ClientId, OfferPool, RendezvousRecord
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from signalbox.rendezvous.wire.reply import answer_reply
from stacks.settings.config import Config
from tests.patience import SOON_SECONDS, wait_for

SETTINGS = Config()  # the stage is deployed with the defaults
PATIENCE_SECONDS = SETTINGS.offer_patience_seconds
KEPT_FOR = timedelta(seconds=PATIENCE_SECONDS + SETTINGS.client_queue_lease_seconds)
HTTP_PATIENCE_SECONDS = SETTINGS.http_offer_patience_seconds
# The doors of a stage. Behind both are the same functions, so most tests at the second one are left to `make release`.
DOORS = ("url", "api")
at_each_door = pytest.mark.parametrize("door", DOORS)
at_doors = pytest.mark.parametrize("door", [DOORS[0], pytest.param(DOORS[1], marks=pytest.mark.release)])
OF_PROXIES = ("proxy", "answer")
AT_ONCE = 96  # the number of clients and proxies that can wait at the same time

DENIED = '{"error":"no snowflake proxies currently available"}'
TIMED_OUT = '{"error":"timed out waiting for answer!"}'


def dead_letter_reasons(sqs: Any, url: str, count: int, *, seconds: float = SOON_SECONDS) -> dict[str, str]:
    """Wait for dead letters and return their reasons by body."""
    found: dict[str, str] = {}

    def all_of_them() -> bool:
        page = sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            WaitTimeSeconds=1,
        )
        for letter in page.get("Messages", ()):
            found[letter["Body"]] = letter["MessageAttributes"]["Reason"]["StringValue"]
        return len(found) >= count

    wait_for(all_of_them, f"{count} dead letters in {url}", seconds=seconds)
    return found


def _original(letter: Mapping[str, Any]) -> str | None:
    """Return the message of a dead letter that a function wrote; SQS's own, of a killed function, names none."""
    attribute = letter.get("MessageAttributes", {}).get("OriginalMessageId")
    return attribute["StringValue"] if attribute else None


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An HTTP response with header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A client's offer, and the time at which it was sent."""

    client_id: ClientId
    offer: str
    sent_at: float

    @property
    def answer(self) -> str:
        """The reply to the client if a proxy answers this offer."""
        return answer_reply(sample_answer(self.offer))

    def seconds_since(self) -> float:
        return time.monotonic() - self.sent_at


@dataclass(frozen=True, slots=True)
class WaitingProxy:
    """A proxy that polls until it gets an offer."""

    sid: str
    served: Future[ServeResult]

    def offer(self, *, seconds: float = SOON_SECONDS) -> str:
        """Return the offer in the proxy's poll response, or an empty text."""
        response = self.served.result(seconds).response
        return response.offer if response else ""


@dataclass(frozen=True, slots=True)
class Parties:
    """Clients with the limited key, proxies without a key, and an administrator with all permissions."""

    deployment: Deployment
    client_session: Any
    client_sqs: Any
    sqs: Any
    table: DynamoTable
    door: str = DOORS[0]
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(AT_ONCE))

    @classmethod
    def of(cls, deployment: Deployment, key: ClientCredentials) -> "Parties":
        config = ClientConfig(max_pool_connections=AT_ONCE)
        session, client_session = deployment.session(), deployment.session_of(key)
        return cls(
            deployment,
            client_session,
            client_sqs=client_session.client("sqs", config=config),
            sqs=session.client("sqs", config=config),
            table=DynamoTable(session.client("dynamodb", config=config), deployment.outputs["RendezvousTable"]),
        )

    @classmethod
    def of_local(cls, deployment: Deployment, local: Mapping[str, Any]) -> "Parties":
        """Return those of a local stage, whose `local.json` has the key of the clients."""
        key = local["client_credentials"]
        return cls.of(deployment, ClientCredentials(key["access_key_id"], key["secret_access_key"]))

    # Clients

    def ask(self, nat: Nat = Nat.UNRESTRICTED) -> Asked:
        """Send the offer of a new client."""
        client_id = new_client_id()
        offer = sample_offer(client_id)
        self.send(offer_body(offer, nat), client_id=client_id)
        return Asked(ClientId(client_id), offer, time.monotonic())

    def send(self, body: str, *, client_id: str) -> str:
        """Send a client's message and return its id."""
        attribute = {"DataType": "String", "StringValue": client_id}
        sent = self.client_sqs.send_message(
            QueueUrl=self.deployment.outputs["BrokerQueueUrl"],
            MessageBody=body,
            MessageAttributes={"ClientID": attribute},
        )
        return str(sent["MessageId"])

    def reply(self, client_id: str, *, seconds: float = SOON_SECONDS) -> str:
        """Wait for the reply in a client's queue and return its body."""
        url = wait_for(lambda: self.client_queue(client_id), "the client's queue", seconds=seconds)
        messages = wait_for(lambda: self._received(url), f"a reply to client {client_id}", seconds=seconds)
        return str(messages[0]["Body"])

    def client_queue(self, client_id: str) -> str | None:
        """Return the URL of a client's queue, or None if it does not exist."""
        name = self.deployment.outputs["ClientQueuePrefix"] + client_id
        try:
            return str(self.client_sqs.get_queue_url(QueueName=name)["QueueUrl"])
        except self.client_sqs.exceptions.QueueDoesNotExist:
            return None

    def _received(self, queue_url: str) -> list[dict[str, Any]]:
        return self.client_sqs.receive_message(QueueUrl=queue_url, WaitTimeSeconds=2).get("Messages", [])

    # Proxies

    def proxy(self, nat: Nat = Nat.UNRESTRICTED, **settings: Any) -> ProxySimulator:
        return ProxySimulator(self.url(of_proxies=True), nat=nat, **settings)

    def url(self, *, of_proxies: bool) -> str:
        """Return the URL of proxies, or of clients and pages, at the door of these parties."""
        if self.door == "api":
            return f"{require_local(self.deployment).endpoint_url}/rendezvous-api/"
        return self.deployment.rendezvous_url if of_proxies else self.deployment.clients_url

    def wait(self, proxy: ProxySimulator) -> WaitingProxy:
        """Let a proxy poll until it gets an offer, and return as soon as the broker knows it."""
        sid = new_session_id()
        waiting = WaitingProxy(sid, self.pool.submit(replace(proxy, new_session_id=lambda: sid).serve))
        wait_for(lambda: proxy_group(proxy.nat) in self.paces.all(), "the first poll")
        return waiting

    @property
    def paces(self) -> DynamoPaces:
        return DynamoPaces(self.table)

    @property
    def offers(self) -> DynamoOffers:
        return DynamoOffers(self.table, KEPT_FOR)

    def http(
        self, method: str, path: str, body: str | bytes = b"", *, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Send a request to the broker."""
        base = urlsplit(self.url(of_proxies=path in OF_PROXIES))
        connection = http.client.HTTPConnection(base.netloc, timeout=120)
        try:
            connection.request(method, base.path + path, body or None, dict(headers or {}))
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            return HttpResponse(response.status, names, response.read().decode())
        finally:
            connection.close()

    # The administrator

    def expect_proxies(self, *nats: Nat) -> None:
        """Record a recent poll of these NAT types."""
        for nat in nats:
            self.paces.add(proxy_group(nat), {}, networks={}, now=datetime.now(UTC))

    def forget_polls(self) -> None:
        """Delete the paces of all groups of proxies."""
        for group in ProxyGroup:
            self.table.write(Delete({"pk": "pace", "sk": group}))

    def wait_until_nothing_waits(self) -> None:
        wait_for(lambda: not self.open_offers(), "an empty stage", seconds=2 * PATIENCE_SECONDS)

    def open_offers(self) -> list[RendezvousRecord]:
        return [record for record in self._recent() if record.state in OPEN_STATES]

    def record(self, client_id: str) -> RendezvousRecord | None:
        return next((record for record in self._recent() if record.client_id == client_id), None)

    def _recent(self) -> list[RendezvousRecord]:
        now = datetime.now(UTC)
        return [one for pool in OfferPool for one in self.offers.recent(pool, since=now - KEPT_FOR, until=now)]

    def messages_in(self, queue_url: str) -> int:
        """Return the number of messages in a queue, including those in flight."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=names)["Attributes"]
        return sum(int(found[name]) for name in names)

    def messages_for(self, client_id: str) -> int:
        return self.messages_in(self.client_queue(client_id) or "")

    def waiting_messages(self) -> int:
        return self.messages_in(self.deployment.outputs["BrokerQueueUrl"])

    def dead_letters(self) -> int:
        return self.messages_in(self.deployment.outputs["DeadLetterQueueUrl"])

    def dead_letter(self, message_id: str) -> dict[str, Any]:
        """Wait for the dead letter of a message and delete it, since other tests count dead letters."""
        letter = wait_for(lambda: self._dead_letter(message_id), "the dead letter")
        queue = self.deployment.outputs["DeadLetterQueueUrl"]
        self.sqs.delete_message(QueueUrl=queue, ReceiptHandle=letter["ReceiptHandle"])
        return letter

    def _dead_letter(self, message_id: str) -> dict[str, Any] | None:
        received = self.sqs.receive_message(
            QueueUrl=self.deployment.outputs["DeadLetterQueueUrl"],
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            VisibilityTimeout=0,
        )
        letters = received.get("Messages", [])
        found = [letter for letter in letters if _original(letter) == message_id]
        return found[0] if found else None

    def invoke(self, output: str, payload: Mapping[str, object]) -> dict[str, Any]:
        """Invoke the function of a stack output and return its result."""
        lambda_ = self.deployment.session().client("lambda")
        done = lambda_.invoke(FunctionName=self.deployment.outputs[output], Payload=json.dumps(payload))
        result = json.loads(done["Payload"].read())
        assert "FunctionError" not in done, result
        return dict(result)
