"""A broker in memory with everything around it, for the tests of its rules."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

from signalbox.rendezvous.rules.answer_service import AnswerDesk
from signalbox.rendezvous.rules.client_service import CallDesk
from signalbox.rendezvous.rules.matching import Candidates, Matchmaker, Policy
from signalbox.rendezvous.rules.offer_service import OfferDesk, Receipt
from signalbox.rendezvous.rules.poll_service import PollDesk, PollResult
from signalbox.rendezvous.rules.states import ClientId, Delivery
from signalbox.rendezvous.wire.bridges import DEFAULT_BRIDGES
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from signalbox.rendezvous.wire.proxy import ProxyAnswer, ProxyPoll
from tests.fakes.rendezvous import (
    START,
    MemoryBrokerQueue,
    MemoryClientQueues,
    MemoryClock,
    MemoryHeldPolls,
    MemoryOffers,
    MemoryPresence,
)

OFFER = '{"type":"offer","sdp":"v=0\\r\\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\\r\\n'
OFFER += 'a=candidate:1 1 udp 2122260223 8.8.4.4 40000 typ host\\r\\n"}'
ANSWER = '{"type":"answer","sdp":"v=0\\r\\na=candidate:1 1 udp 1 8.8.8.8 5000 typ host\\r\\n"}'
CLIENT = ClientId("0123456789abcdef")
QUEUE = f"https://queues.example/{CLIENT}"
POLICY = Policy()


class Killed(Exception):
    """The function was killed here."""


@dataclass
class Fuse:
    """Lets so many calls of ports through and kills the function at the next: before it, or right after it."""

    calls_left: int | None = None
    after: bool = False

    def around(self, call: Callable[..., object], *args: object, **kwargs: object) -> object:
        if self.calls_left is None:
            return call(*args, **kwargs)
        if self.calls_left == 0:
            self.calls_left = None
            if self.after:
                call(*args, **kwargs)
            raise Killed
        self.calls_left -= 1
        return call(*args, **kwargs)


class Fused:
    """A port with a fuse."""

    def __init__(self, port: object, fuse: Fuse) -> None:
        self.port, self.fuse = port, fuse

    def __getattr__(self, name: str) -> Callable[..., object]:
        call = getattr(self.port, name)
        return lambda *args, **kwargs: self.fuse.around(call, *args, **kwargs)


@dataclass
class World:
    policy: Policy = POLICY
    fuse: Fuse = field(default_factory=Fuse)
    clock: MemoryClock = field(default_factory=MemoryClock)
    offers: MemoryOffers = field(default_factory=MemoryOffers)
    held_polls: MemoryHeldPolls = field(default_factory=MemoryHeldPolls)
    presence: MemoryPresence = field(default_factory=MemoryPresence)
    client_queues: MemoryClientQueues = field(default_factory=MemoryClientQueues)
    broker_queue: MemoryBrokerQueue = field(default_factory=MemoryBrokerQueue)

    @property
    def matchmaker(self) -> Matchmaker:
        return Matchmaker(Candidates(Fused(self.held_polls, self.fuse)), Fused(self.presence, self.fuse), self.policy)

    def receive(self, delivery: Delivery) -> Receipt:
        desk = OfferDesk(
            offers=Fused(self.offers, self.fuse),
            matchmaker=self.matchmaker,
            client_queues=Fused(self.client_queues, self.fuse),
            clock=self.clock,
            bridges=DEFAULT_BRIDGES,
            country_of=lambda address: "US" if address == "8.8.4.4" else "??",
            policy=self.policy,
        )
        return desk.receive(delivery)

    def poll(self, proxy: ProxyPoll) -> PollResult:
        desk = PollDesk(
            offers=Fused(self.offers, self.fuse),
            held_polls=Fused(self.held_polls, self.fuse),
            presence=Fused(self.presence, self.fuse),
            clock=self.clock,
            random_bits=lambda: 0,
            policy=self.policy,
        )
        return desk.serve(proxy)

    def answer(self, proxy: ProxyPoll, text: str = ANSWER) -> bool:
        desk = AnswerDesk(
            Fused(self.offers, self.fuse),
            Fused(self.client_queues, self.fuse),
            Fused(self.broker_queue, self.fuse),
            self.clock,
        )
        return desk.take(ProxyAnswer(proxy.sid, text)) is not None

    def call_desk(self) -> CallDesk:
        return CallDesk(self.offers, self.matchmaker, self.clock, DEFAULT_BRIDGES, self.policy)

    def expect_proxies(self, *nats: Nat) -> None:
        """Make the broker believe that proxies of these NAT types poll every now and then."""
        self.presence.polls |= dict.fromkeys(nats or tuple(Nat), self.clock.now())

    def wait(self, seconds: float) -> None:
        self.clock.sleep(seconds)

    @property
    def replies(self) -> list[str]:
        return self.client_queues.replies.get(QUEUE, [])

    @property
    def impatient(self) -> "World":
        """The same world, where polls are not held."""
        return replace(self, policy=replace(self.policy, poll_hold=timedelta(0)))


def delivery(
    *, nat: str = "unrestricted", message_id: str = "m1", handle: str = "h1", body: bytes | None = None
) -> Delivery:
    return Delivery(
        client_id=CLIENT,
        message_id=message_id,
        receipt_handle=handle,
        body=offer_body(OFFER, nat).encode() if body is None else body,
        sent_at=START,
        first_received_at=START,
    )


def proxy(sid: str = "p1", *, nat: Nat = Nat.UNRESTRICTED, clients: int = 0) -> ProxyPoll:
    return ProxyPoll(
        sid=sid,
        version="1.3",
        proxy_type="standalone",
        nat=nat,
        clients=clients,
        relay_pattern="snowflake.torproject.net$",
    )
