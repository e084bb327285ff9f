"""A broker with in-memory ports, for the tests of the rules."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from signalbox.networks import CostlyRequests
from signalbox.rendezvous.model.pace import proxy_group
from signalbox.rendezvous.model.states import ClientId, OfferDelivery
from signalbox.rendezvous.rules.answer_service import AnswerService
from signalbox.rendezvous.rules.client_service import ClientService
from signalbox.rendezvous.rules.offer_service import DeliveryResult, OfferService
from signalbox.rendezvous.rules.pacer import Pacer
from signalbox.rendezvous.rules.policy import RendezvousPolicy
from signalbox.rendezvous.rules.poll_service import PollResult, PollService
from signalbox.rendezvous.wire.bridges import DEFAULT_BRIDGES
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from signalbox.rendezvous.wire.proxy import ProxyAnswer, ProxyPoll
from tests.fakes.rendezvous import START, MemoryBrokerQueue, MemoryClientQueues, MemoryClock, MemoryOffers, MemoryPaces

OFFER = '{"type":"offer","sdp":"v=0\\r\\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\\r\\n'
OFFER += 'a=candidate:1 1 udp 2122260223 8.8.4.4 40000 typ host\\r\\n"}'
ANSWER = '{"type":"answer","sdp":"v=0\\r\\na=candidate:1 1 udp 1 8.8.8.8 5000 typ host\\r\\n"}'
CLIENT = ClientId("0123456789abcdef")
POLICY = RendezvousPolicy()


class Killed(Exception):
    """Raised in place of a port call to simulate a killed function."""


@dataclass
class Fuse:
    """Passes `calls_left` port calls and kills the function at the next one, before or `after` it."""

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
    """A port whose calls pass through a fuse."""

    def __init__(self, port: object, fuse: Fuse) -> None:
        self.port, self.fuse = port, fuse

    def __getattr__(self, name: str) -> Callable[..., object]:
        call = getattr(self.port, name)
        return lambda *args, **kwargs: self.fuse.around(call, *args, **kwargs)


@dataclass
class World:
    policy: RendezvousPolicy = POLICY
    random: float = 0.5
    fuse: Fuse = field(default_factory=Fuse)
    clock: MemoryClock = field(default_factory=MemoryClock)
    offers: MemoryOffers = field(default_factory=MemoryOffers)
    paces: MemoryPaces = field(default_factory=MemoryPaces)
    client_queues: MemoryClientQueues = field(default_factory=MemoryClientQueues)
    broker_queue: MemoryBrokerQueue = field(default_factory=MemoryBrokerQueue)
    misses: CostlyRequests = field(default_factory=CostlyRequests)

    def receive(self, delivery: OfferDelivery) -> DeliveryResult:
        service = OfferService(
            offers=Fused(self.offers, self.fuse),
            paces=Fused(self.paces, self.fuse),
            client_queues=Fused(self.client_queues, self.fuse),
            clock=self.clock,
            bridges=DEFAULT_BRIDGES,
            country_lookup=lambda address: "US" if address == "8.8.4.4" else "??",
            policy=self.policy,
        )
        return service.receive(delivery)

    def poll(self, proxy: ProxyPoll) -> PollResult:
        return self.poll_service().serve(proxy, network=None)

    def poll_service(self) -> PollService:
        """Return the service of a function instance."""
        return PollService(
            offers=self.offers,
            pacer=Pacer(self.paces, self.policy),
            clock=self.clock,
            random=lambda: self.random,
            policy=self.policy,
        )

    def answer(self, proxy: ProxyPoll, text: str = ANSWER, *, network: int | None = None) -> bool:
        service = AnswerService(
            self.offers, self.client_queues, self.broker_queue, self.clock, self.policy, self.misses
        )
        return service.accept(ProxyAnswer(proxy.sid, text), network=network) is not None

    def client_service(self) -> ClientService:
        return ClientService(self.offers, self.paces, self.clock, self.policy)

    def expect_proxies(self, *nats: Nat) -> None:
        """Record a recent poll of these NAT types, by default of all."""
        for nat in nats or tuple(Nat):
            self.paces.add(proxy_group(nat), {}, networks={}, now=self.clock.now())

    def wait(self, seconds: float) -> None:
        self.clock.sleep(seconds)

    @property
    def replies(self) -> list[str]:
        return self.client_queues.replies.get(CLIENT, [])


def delivery(
    *,
    nat: str = "unrestricted",
    message_id: str = "m1",
    handle: str = "h1",
    body: bytes | None = None,
    sent_at: datetime = START,
) -> OfferDelivery:
    return OfferDelivery(
        client_id=CLIENT,
        message_id=message_id,
        receipt_handle=handle,
        body=offer_body(OFFER, nat).encode() if body is None else body,
        sent_at=sent_at,
    )


def proxy(sid: str = "p1", *, nat: Nat = Nat.RESTRICTED, clients: int = 0) -> ProxyPoll:
    return ProxyPoll(
        sid=sid,
        proxy_type="standalone",
        nat=nat,
        clients=clients,
        relay_pattern="snowflake.torproject.net$",
    )


def parked() -> World:
    """Return a world in which the offer of a client waits."""
    world = World()
    world.expect_proxies()
    world.receive(delivery())
    return world


def matched() -> World:
    """Return a world in which a proxy has the offer of a client."""
    world = parked()
    world.poll(proxy())
    return world
