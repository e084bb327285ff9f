"""The adapters of a stage that shares its proxies with other regions, created once per function instance."""

import logging
from functools import cache
from threading import Lock

from lambdas.rendezvous import wiring
from lambdas.shared import instance
from lambdas.shared.threads import parallel_map
from signalbox.aws.rendezvous.announcements import DynamoAnnouncements
from signalbox.aws.rendezvous.peers import FAILURES, answer_service_of, passes, peers_of
from signalbox.rendezvous.rules.answer_service import AnswerService
from signalbox.rendezvous.rules.peer_address import PeerAddress, parse_peers
from signalbox.rendezvous.rules.peers import Peers
from signalbox.rendezvous.rules.shared_answers import SharedAnswerService
from signalbox.rendezvous.rules.shared_offers import SharedOffers
from signalbox.rendezvous.wire.nat import Nat

logger = logging.getLogger(__name__)


@cache
def offers() -> SharedOffers:
    """Return the offers of this stage, and those that the peers announced."""
    return SharedOffers(wiring.local_offers(), _announcements(), _peers())


def have_proxies(nat: Nat) -> bool:
    """Return whether a proxy that is compatible with a client of this NAT type polled recently at a peer."""
    return bool(_peers().with_proxies(nat))


def answer_service(local: AnswerService) -> SharedAnswerService:
    """Return the service that delivers answers to this stage's offers, with `local`, and to those of its peers."""
    homes = {
        address.region: answer_service_of(
            address,
            instance.client_elsewhere,
            broker_queue_url=instance.settings().text("BROKER_QUEUE_URL"),
            region=_region(),
            clock=instance.CLOCK,
            policy=wiring.policy(),
        )
        for address in _addresses()
    }
    return SharedAnswerService(local, homes, _announcements())


@cache
def _announcements() -> DynamoAnnouncements:
    return DynamoAnnouncements(wiring.table())


@cache
def _peers() -> Peers:
    return Peers(
        region=_region(),
        peers=peers_of(_addresses(), instance.client_elsewhere, table=wiring.table()),
        clock=instance.CLOCK,
        recency=wiring.policy().proxy_recency,
        failures=FAILURES,
        report=_report,
        passes=passes,
        parallel_map=parallel_map,
        lock=Lock(),
    )


def _addresses() -> list[PeerAddress]:
    # All stages of a group have the same setting, so it also contains this one.
    return [address for address in parse_peers(instance.settings().text(wiring.PEERS)) if address.region != _region()]


def _region() -> str:
    return wiring.table().client.meta.region_name


def _report(region: str, error: Exception) -> None:
    logger.warning("the peer in %s does not respond and rests: %s", region, error)
