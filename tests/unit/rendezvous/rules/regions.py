"""Three regions with in-memory ports that are peers of each other, and whose connections can be cut."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from signalbox.rendezvous.rules.answer_service import AnswerService
from signalbox.rendezvous.rules.client_service import ClientService
from signalbox.rendezvous.rules.held_polls import HeldPoll
from signalbox.rendezvous.rules.matching import HeldPollCache, PollReserver
from signalbox.rendezvous.rules.offer_service import DeliveryResult, OfferService
from signalbox.rendezvous.rules.peers import Peer, Peers
from signalbox.rendezvous.rules.poll_service import PollResult, PollService
from signalbox.rendezvous.rules.shared_answers import SharedAnswerService
from signalbox.rendezvous.rules.shared_offers import SharedOffers
from signalbox.rendezvous.rules.states import ClientId, OfferDelivery, Rendezvous
from signalbox.rendezvous.wire.bridges import DEFAULT_BRIDGES
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.proxy import ProxyAnswer, ProxyPoll
from tests.fakes.rendezvous import (
    MemoryAnnouncements,
    MemoryBrokerQueue,
    MemoryClientQueues,
    MemoryClock,
    MemoryHeldPolls,
    MemoryOffers,
    MemoryPresence,
)
from tests.unit.rendezvous.rules.services import ANSWER, POLICY, Fuse, Fused

HOME, NEAR, FAR = "eu-west-1", "us-east-1", "ap-northeast-1"


class Away(Exception):
    """Raised by a call to a region that is cut off."""


@dataclass
class Network:
    """The regions that are cut off from the others, and the number of calls that failed therefore."""

    away: set[str] = field(default_factory=set)
    failed: int = 0

    def port(self, port: object, *, of: str, called_from: str) -> Any:
        network = self

        class Remote:
            def __getattr__(self, name: str) -> Callable[..., object]:
                if {of, called_from} & network.away:
                    network.failed += 1
                    raise Away(of)
                return getattr(port, name)  # type: ignore[no-any-return]

        return Remote()


@dataclass
class Region:
    """The stage of one region: its stored state, and the services of its functions."""

    name: str
    clock: MemoryClock
    network: Network
    others: list["Region"] = field(default_factory=list)
    fuse: Fuse = field(default_factory=Fuse)
    offers: MemoryOffers = field(default_factory=MemoryOffers)
    announcements: MemoryAnnouncements = field(default_factory=MemoryAnnouncements)
    held_polls: MemoryHeldPolls = field(default_factory=MemoryHeldPolls)
    presence: MemoryPresence = field(default_factory=MemoryPresence)
    client_queues: MemoryClientQueues = field(default_factory=MemoryClientQueues)
    broker_queue: MemoryBrokerQueue = field(default_factory=MemoryBrokerQueue)
    reported: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.instance: Peers | None = None

    @property
    def peers(self) -> Peers:
        """The peers as one function instance knows them."""
        if self.instance is None:
            self.instance = Peers(
                region=self.name,
                peers=[self._peer(other) for other in self.others],
                clock=self.clock,
                recency=POLICY.proxy_recency,
                failures=(Away,),
                report=lambda region, _: self.reported.append(region),
            )
        return self.instance

    def _peer(self, other: "Region") -> Peer:
        def remote(port: object) -> Any:
            return Fused(self.network.port(port, of=other.name, called_from=self.name), self.fuse)

        theirs = MemoryOffers(other.offers.records, self.offers.matches, other.offers.pooled, home=other.name)
        return Peer(other.name, remote(theirs), remote(other.announcements), remote(other.presence))

    @property
    def shared_offers(self) -> SharedOffers:
        return SharedOffers(Fused(self.offers, self.fuse), Fused(self.announcements, self.fuse), self.peers)

    @property
    def poll_reserver(self) -> PollReserver:
        return PollReserver(
            HeldPollCache(self.held_polls), self.presence, POLICY, lambda nat: bool(self.peers.with_proxies(nat))
        )

    def receive(self, delivery: OfferDelivery) -> DeliveryResult:
        service = OfferService(
            offers=self.shared_offers,
            poll_reserver=self.poll_reserver,
            client_queues=Fused(self.client_queues, self.fuse),
            clock=self.clock,
            bridges=DEFAULT_BRIDGES,
            country_lookup=lambda _: "??",
            policy=POLICY,
        )
        return service.receive(delivery)

    def client_service(self) -> ClientService:
        return ClientService(self.shared_offers, self.poll_reserver, self.clock, DEFAULT_BRIDGES, POLICY)

    def poll(self, proxy: ProxyPoll, *, hold_seconds: float = 0) -> PollResult:
        service = PollService(
            offers=self.shared_offers,
            held_polls=self.held_polls,
            presence=self.presence,
            clock=self.clock,
            random_bits=lambda: 0,
            policy=replace(POLICY, poll_hold=hold_seconds * POLICY.poll_hold / 10),
        )
        return service.serve(proxy)

    def answer(self, proxy: ProxyPoll) -> Rendezvous | None:
        service = SharedAnswerService(
            self._answers(self), {other.name: self._answers(other) for other in self.others}, self.announcements
        )
        return service.accept(ProxyAnswer(proxy.sid, ANSWER))

    def _answers(self, home: "Region") -> AnswerService:
        def port(port: object) -> Any:
            near = port if home is self else self.network.port(port, of=home.name, called_from=self.name)
            return Fused(near, self.fuse)

        local = MemoryOffers(home.offers.records, self.offers.matches, home.offers.pooled)
        return AnswerService(port(local), port(home.client_queues), port(home.broker_queue), self.clock, POLICY)

    def expect_proxies(self, *nats: Nat) -> None:
        self.presence.polls |= dict.fromkeys(nats or tuple(Nat), self.clock.now())

    def hold(self, proxy: ProxyPoll) -> HeldPoll:
        """Store a held poll of a proxy."""
        now = self.clock.now()
        held = HeldPoll(0, proxy.sid, proxy.nat, proxy.proxy_type, proxy.clients, now, now + POLICY.poll_hold)
        assert self.held_polls.acquire(held, now=now)
        return held

    def replies(self, client_id: ClientId) -> list[str]:
        return self.client_queues.replies.get(self.client_queues.url(client_id), [])


@dataclass
class Regions:
    """Three regions that share their proxies."""

    clock: MemoryClock = field(default_factory=MemoryClock)
    network: Network = field(default_factory=Network)

    def __post_init__(self) -> None:
        all_of_them = [Region(name, self.clock, self.network) for name in (HOME, NEAR, FAR)]
        for region in all_of_them:
            region.others += [other for other in all_of_them if other is not region]
        self.home, self.near, self.far = all_of_them
