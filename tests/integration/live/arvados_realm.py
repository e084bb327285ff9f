"""A realm for Arvados' clients on a deployed stage, and the rows that are published to it."""

from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient

REALM = "xarvados.fifo"


@contextmanager
def arvados_realm(deployment: Deployment) -> Iterator[ExchangeClient]:
    """Provide an administrator of a stage with the realm."""
    client = only_arvados_realm(deployment, REALM, order_by="exchange")
    yield client
    client.delete_exchange(REALM, force=True)


def only_arvados_realm(deployment: Deployment, realm: str, **settings: object) -> ExchangeClient:
    """Declare the realm of a stage for Arvados' clients in the place of another; return an administrator."""
    client = client_of(deployment)
    for one in filter(itemgetter("live"), client.exchanges()):
        if client.exchanges(one["exchange"])[0]["live"]["arvados"]:
            client.declare_exchange(one["exchange"], live={"arvados": False})
    client.declare_exchange(realm, live={"arvados": True, **settings})
    return client


def settle(administrator: ExchangeClient) -> None:
    """Return when all functions use the present rights, which each command waits for that takes a right away."""
    administrator.ask("ungrant", {"user": "@nobody", "exchange": REALM, "right": "read", "uri": "nothing"})


def row(number: int, event_type: str = "create") -> dict[str, object]:
    """Return a row of the table `logs`, as `arvados-ws` sends it, without `msgID`."""
    return {
        "id": number,
        "uuid": f"zzzzz-57u5n-{number:015d}",
        "object_uuid": "zzzzz-4zz18-000000000000000",
        "object_owner_uuid": "zzzzz-j7d0g-000000000000000",
        "object_kind": "arvados#collection",
        "event_type": event_type,
        "event_at": "2026-11-23T07:00:00.000000Z",
        "properties": {"new_attributes": {"name": f"row {number}"}},
    }
