"""Arvados' Python SDK, unmodified, on a deployed stage."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from signalbox.aws.live.arvados_cluster import CURRENT_USER
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.exchange.model.records import OrderBy
from tests.fakes.issuer import Answer, running_issuer
from tests.integration.live.arvados_realm import REALM, arvados_realm, row, settle
from tests.integration.live.arvados_sdk import sdk_client
from tests.integration.live.stage import TrialRealm
from tests.integration.live.tls_endpoint import TlsEndpoint, tls_endpoint

pytestmark = pytest.mark.emulator

CREATED, UPDATED = [["event_type", "in", ["create"]]], [["event_type", "in", ["update"]]]
OK, BAD = {"status": 200}, {"status": 400}


@pytest.fixture
def administrator(deployment: Deployment) -> Iterator[ExchangeClient]:
    """Provide an administrator of a stage with a realm for Arvados, in which a user may read `record.`."""
    with arvados_realm(deployment) as client:
        yield client


@pytest.fixture
def endpoint(place: TrialRealm, tmp_path: Path) -> Iterator[TlsEndpoint]:
    with tls_endpoint(place.url, tmp_path) as found:
        yield found


def test_the_sdk_follows_catches_up_and_unsubscribes(
    place: TrialRealm, administrator: ExchangeClient, endpoint: TlsEndpoint
) -> None:
    name, secret = place.users["subscriber"]
    path = urlsplit(place.url).path
    administrator.ask("grant", {"user": name, "exchange": REALM, "right": "read", "match": "prefix", "uri": "record."})
    settle(administrator)

    def publish(number: int, event_type: str = "create", topic: str = "record.a") -> None:
        body = {**row(number, event_type), "created_at": "2026-11-23T07:00:00.000000Z"}
        administrator.publish(REALM, topic, json.dumps(body), order_by=OrderBy.EXCHANGE)

    with sdk_client(endpoint, path, f"v2/{name}/wrong", CREATED) as client:
        ((refused, text),) = client.next(1)[0].items()
        assert (refused, "401" in text) == ("refused", True)

    publish(1)
    with sdk_client(endpoint, path, f"v2/{name}/{secret}", CREATED) as client:
        assert client.next(1) == [OK]
        publish(2)
        publish(3, "update")
        publish(4, topic="secret.a")
        publish(5)
        assert client.next(2) == [{"msgID": 1, **row(2)}, {"msgID": 2, **row(5)}]

        client.ask(send="nonsense")
        client.ask(subscribe=UPDATED)
        assert client.next(2) == [BAD, OK]
        publish(6, "update")
        assert client.next(1) == [{"msgID": 3, **row(6, "update")}]

        endpoint.cut()
        for number in (7, 8, 9):
            publish(number, "update" if number == 8 else "create")
        endpoint.closed = False
        again = client.next(5)
        assert [one for one in again if "id" not in one] == [OK, OK]
        publish(10)
        rows = [*again, *client.next(1)]
        assert sorted(one["id"] for one in rows if "id" in one) == [7, 8, 9, 10]
        assert [one["msgID"] for one in rows if "id" in one] == [1, 2, 3, 4]

        client.ask(unsubscribe=UPDATED)
        assert client.next(1) == [OK]
        publish(11, "update")
        publish(12)
        assert client.next(1) == [{"msgID": 5, **row(12)}]


def test_a_token_of_the_cluster_joins_with_the_groups_that_the_bridge_sets(
    place: TrialRealm, administrator: ExchangeClient, endpoint: TlsEndpoint
) -> None:
    own, other, user = "zzzzz-j7d0g-00000000000000a", "zzzzz-j7d0g-00000000000000b", "zzzzz-tpzed-00000000000000a"
    token = "v2/zzzzz-gj3su-00000000000000a/0123456789abcdefghijklmnopqrstuvwxyz"
    person = {"uuid": user, "is_active": True, "is_admin": False}
    grant = {"user": "@everyone", "exchange": REALM, "right": "read", "match": "wildcard"}
    for word in ("{user}", "{group}"):
        administrator.ask("grant", {**grant, "uri": f"record..{word}.."})
    settle(administrator)

    with running_issuer() as cluster:
        administrator.declare_exchange(REALM, live={"arvados_api": cluster.url})
        administrator.ask("user_groups", {"exchange": REALM, "groups": {user: [own]}})
        cluster.answers = {CURRENT_USER: Answer((json.dumps(person).encode(),))}
        with sdk_client(endpoint, urlsplit(place.url).path, token, CREATED) as client:
            assert client.next(1) == [OK]
            for number, owner in enumerate((other, own, user), start=21):
                topic = f"record.collection.{owner}.u{number}.create"
                administrator.publish(REALM, topic, json.dumps(row(number)), order_by=OrderBy.EXCHANGE)
            assert client.next(2) == [{"msgID": 1, **row(22)}, {"msgID": 2, **row(23)}]

        cluster.answers[CURRENT_USER] = Answer((b"{}",), status=401)
        refused = token.replace("a/", "b/")
        with sdk_client(endpoint, urlsplit(place.url).path, refused, CREATED) as client:
            ((kind, text),) = client.next(1)[0].items()
            assert (kind, "401" in text) == ("refused", True)
