"""The stage of rendezvous: clients over SQS, proxies, a stranger, and the account of what each saw."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError

from lambdas.rendezvous import offer, proxies, sweep
from signalbox.clients.rendezvous.simulator import RELAY_PATTERN, sample_answer, sample_offer
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from signalbox.rendezvous.wire.proxy import PollResponse, ProxyAnswer, ProxyPoll, answer_body, poll_body
from stacks.settings.choices import OFFER_VISIBILITY_SECONDS
from stacks.settings.config import Config
from tests.simulation.functions import Failure, Mapping_
from tests.simulation.services import Answer, Refusal, arn_of
from tests.simulation.sqs import URL
from tests.simulation.table import Index, Table
from tests.simulation.world import World

PREFIX, BROKER, DEAD = "snowflake-client-", "snowflake-broker", "dead-offers"
CLIENTS, PROXIES = 10, 4
BATCH, SWEEP_SECONDS, STRAYS_EVERY = 10, 60, 1200
CONFIG = Config()
ENVIRONMENT = {
    "RENDEZVOUS_TABLE": "Rendezvous",
    "LEASE_TABLE": "Leases",
    "HISTORY_STREAM": "history",
    "HISTORY_OVERFLOW_URL": URL + "overflow",
    "STAGE": "signalbox",
    "BROKER_QUEUE_URL": URL + BROKER,
    "BROKER_QUEUE_ARN": arn_of("sqs", BROKER),
    "BROKER_QUEUE_ATTRIBUTES": json.dumps({"VisibilityTimeout": str(OFFER_VISIBILITY_SECONDS)}),
    "DEAD_LETTER_QUEUE_URL": URL + DEAD,
    "CLIENT_QUEUE_PREFIX": PREFIX,
    "CLIENT_QUEUE_ARN_PREFIX": arn_of("sqs", PREFIX),
    "CLIENT_QUEUE_LEASE_SECONDS": str(CONFIG.client_queue_lease_seconds),
    "STRAY_QUEUE_AGE_SECONDS": str(CONFIG.stray_queue_age_seconds),
    "OFFER_PATIENCE_SECONDS": str(CONFIG.offer_patience_seconds),
    "HTTP_OFFER_PATIENCE_SECONDS": str(CONFIG.http_offer_patience_seconds),
    "MATCH_PATIENCE_SECONDS": str(CONFIG.match_patience_seconds),
    "PROXY_RECENCY_SECONDS": str(CONFIG.proxy_recency_seconds),
    "POLLS_PER_MINUTE": "30",  # a small budget: proxies poll rarely
    "ALLOWED_RELAY_PATTERN": "snowflake.torproject.net$",
}


@dataclass
class SentOffer:
    """An offer of a client, and when the client began and ended to send it."""

    client_id: str
    sdp: str
    began: float
    sent: float | None = None
    is_valid: bool = True


@dataclass
class Match:
    """An offer that a proxy received: when its poll began and ended."""

    sid: str
    began: float
    received: float


@dataclass
class RendezvousAccount:
    """What clients and proxies saw."""

    offers: dict[str, SentOffer] = field(default_factory=dict)
    matches: dict[str, list[Match]] = field(default_factory=lambda: defaultdict(list))
    answers: dict[str, tuple[str, str]] = field(default_factory=dict)
    posted: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    accepted: list[tuple[float, str]] = field(default_factory=list)
    refused: list[tuple[float, str]] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)


class RendezvousWorld(World):
    """A stage of rendezvous with its clients."""

    private = ("192.0.2.", "198.51.100.", "candidate")

    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__(seed, **options)
        self.account = RendezvousAccount()
        self._make_resources()
        self._make_functions()
        self._make_clients()

    def _make_resources(self) -> None:
        index = {"by_expiry": Index("capability", "due_at", ("queue_url",))}
        self.dynamodb.tables |= {
            "Rendezvous": Table("Rendezvous", "pk", "sk"),
            "Leases": Table("Leases", "queue_name", indexes=index),
        }
        self.sqs(
            "CreateQueue",
            {
                "QueueName": BROKER,
                "Attributes": {
                    "VisibilityTimeout": str(OFFER_VISIBILITY_SECONDS),
                    "MessageRetentionPeriod": str(CONFIG.broker_queue_retention_seconds),
                },
            },
        )
        for name in (DEAD, PREFIX + "foreign"):
            self.sqs("CreateQueue", {"QueueName": name, "Attributes": {"MessageRetentionPeriod": "1209600"}})

    def _make_functions(self) -> None:
        offers = self.function(
            "offer", offer.handler, timeout=CONFIG.offer_timeout_seconds, environment=ENVIRONMENT, concurrency=20
        )
        self.function("proxies", proxies.handler, timeout=10, environment=ENVIRONMENT)
        self.function("sweep", sweep.handler, timeout=SWEEP_SECONDS, environment=ENVIRONMENT)
        Mapping_(self.sqs.queues[BROKER], offers, batch_size=BATCH, concurrency=CONFIG.offer_concurrency)
        self.schedule(self.functions["sweep"], {"task": "leases"}, CONFIG.sweep_interval_minutes * 60)
        self.schedule(self.functions["sweep"], {"task": "strays"}, STRAYS_EVERY)

    # Clients.

    def _make_clients(self) -> None:
        for number in range(CLIENTS):
            self.actor(f"client{number}", partial(self._client, number))
        for number in range(PROXIES):
            self.actor(f"proxy{number}", partial(self._proxy, number))
        self.actor("stranger", self._stranger)

    def _client(self, number: int) -> None:
        kernel = self.kernel
        while kernel.now < self.end - 300:
            kernel.sleep(kernel.between(20, 160))
            client_id = kernel.bytes(8).hex()
            nat = (Nat.UNRESTRICTED, Nat.RESTRICTED, Nat.UNKNOWN)[kernel.number(3)]
            self._send(client_id, nat, is_valid=kernel.random() > 0.03)
            for _ in range(60):
                if self._reply(client_id):
                    break
                kernel.sleep(1)

    def _send(self, client_id: str, nat: Nat, *, is_valid: bool) -> None:
        kernel = self.kernel
        sent = SentOffer(client_id, sample_offer(client_id), kernel.now, is_valid=is_valid)
        self.account.offers[client_id] = sent
        body = offer_body(sent.sdp, nat) if is_valid else "1.0\n{"
        attributes = {"ClientID": {"DataType": "String", "StringValue": client_id}}
        for _ in range(2 if kernel.random() < 0.05 else 1):
            try:
                self.call("sqs", "SendMessage", QueueUrl=URL + BROKER, MessageBody=body, MessageAttributes=attributes)
                sent.sent = sent.sent or kernel.now
            except (Refusal, BotoCoreError):
                pass  # the client does not know whether it was sent

    def _reply(self, client_id: str) -> bool:
        try:
            answer = self.call("sqs", "ReceiveMessage", QueueUrl=URL + PREFIX + client_id)
        except (Refusal, BotoCoreError):
            return False
        return bool(answer.get("Messages"))

    # Proxies.

    def _proxy(self, number: int) -> None:
        kernel = self.kernel
        nat = (Nat.UNRESTRICTED, Nat.RESTRICTED, Nat.UNRESTRICTED, Nat.UNKNOWN)[number % 4]
        while kernel.now < self.end:
            kernel.sleep(self._poll(number, nat))

    def _poll(self, number: int, nat: Nat) -> float:
        """Poll once, and answer the offer that comes; return the seconds until the next poll."""
        began, sid = self.kernel.now, self.kernel.bytes(8).hex()
        body = poll_body(ProxyPoll(sid, "standalone", nat, 0, RELAY_PATTERN))
        found = self._post("/proxy", body, f"198.51.100.{number}")
        if found is None or found["statusCode"] != 200:
            return 5
        response = PollResponse.parse(found["body"].encode())
        if response.is_match:
            self._answer(response.offer, sid, began, number)
        return response.next_poll_milliseconds / 1000

    def _answer(self, sdp: str, sid: str, began: float, number: int) -> None:
        kernel = self.kernel
        self.account.matches[sdp].append(Match(sid, began, kernel.now))
        if kernel.random() < 0.25:
            return  # a silent proxy
        kernel.sleep(self._thinking(sdp))
        answer = sample_answer(sdp, address=f"198.51.100.{number}").replace("1742392234", f"17{int(sid[:7], 16):010}")
        self.account.answers[answer] = (sdp, sid)
        for _ in range(2 if kernel.random() < 0.1 else 1):
            self.account.posted[answer].append(kernel.now)
            found = self._post("/answer", answer_body(ProxyAnswer(sid, answer)), f"198.51.100.{number}")
            status = json.loads(found.get("body") or "{}").get("Status") if found is not None else None
            if status is not None:
                (self.account.accepted if status == "success" else self.account.refused).append((kernel.now, answer))

    def _thinking(self, sdp: str) -> float:
        """Return how long a proxy takes to answer: some answer when the client's patience ends."""
        kernel = self.kernel
        (began,) = (offer.began for offer in self.account.offers.values() if offer.sdp == sdp)
        left = began + CONFIG.offer_patience_seconds - kernel.now
        if 0.1 < left < CONFIG.match_patience_seconds and kernel.random() < 0.5:
            return left + kernel.between(-0.05, 0.02)
        return kernel.between(0.1, 2) if kernel.random() < 0.8 else kernel.between(2, 9)

    def _stranger(self) -> None:
        """Answer offers without a match."""
        kernel = self.kernel
        while kernel.now < self.end:
            kernel.sleep(kernel.between(30, 90))
            sid = kernel.bytes(8).hex()
            answer = sample_answer(sample_offer(sid))
            found = self._post("/answer", answer_body(ProxyAnswer(sid, answer)), "203.0.113.9")
            if found is not None and found["statusCode"] == 200:
                self.account.strangers.append(json.loads(found["body"])["Status"])

    def _post(self, path: str, body: str, address: str) -> Answer | None:
        http = {"method": "POST", "path": path, "sourceIp": address}
        event = {
            "rawPath": path,
            "headers": {},
            "requestContext": {"http": http, "requestId": self.kernel.uuid()},
            "body": body,
        }
        found = self.request(self.functions["proxies"], event)
        return None if isinstance(found, Failure) else found

    def replies(self, client_id: str) -> list[tuple[float, str]]:
        """Return everything that was ever sent to a client's queues."""
        made = [queue for queue in self.sqs.made if queue.name == PREFIX + client_id]
        return [(one.sent_at, one.body) for queue in made for one in queue.log]

    def run(self) -> None:
        """Run, and let the last queues be found as strays."""
        super().run()
        self.kernel.run(self.end + CONFIG.stray_queue_age_seconds + 2 * STRAYS_EVERY + SWEEP_SECONDS)
