"""The function `offer`: it receives offers from the broker queue and parks, refuses or expires them."""

from functools import cache
from typing import Any

from lambdas.rendezvous import deliveries, wiring
from lambdas.shared import instance, shutdown
from signalbox.rendezvous.rules.offer_service import OfferService

shutdown.before_end(wiring.flush)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Return the messages that stay in flight: the parked offers and those whose handling failed."""
    service = _service()  # created once, before the threads share it
    return deliveries.process(event["Records"], service.receive, wiring.recorder().record)


@cache
def _service() -> OfferService:
    return OfferService(
        offers=wiring.offers(),
        paces=wiring.paces(),
        client_queues=wiring.client_queues(),
        clock=instance.CLOCK,
        bridges=wiring.bridges(),
        country_lookup=wiring.country_lookup(),
        policy=wiring.policy(),
    )
