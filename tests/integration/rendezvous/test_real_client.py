"""Upstream's client, unchanged, against the deployed app."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts.rendezvous.clients import real_clients
from benchmarks.parts.rendezvous.original import build_client
from benchmarks.parts.rendezvous.proxies import polling
from benchmarks.shared.stage import Stage

pytestmark = pytest.mark.emulator
CLIENTS = 2


@pytest.fixture(scope="module")
def real_client() -> Path:
    """Upstream's client, built from its published Go module."""
    return build_client()


def test_upstreams_client_gets_the_proxys_answer(deployed: dict[str, Any], real_client: Path) -> None:
    """Upstream's client, unchanged and with the limited key, gets the proxy's answer to its offer."""
    side = Stage(deployed).signalbox()

    with polling(side.broker_url, CLIENTS):
        exchanges = real_clients(real_client)(side, CLIENTS, CLIENTS)

    assert [(exchange.error, exchange.is_right) for exchange in exchanges] == [("", True)] * CLIENTS
    calls = exchanges[0].calls
    assert calls.keys() == {"SendMessage", "GetQueueUrl", "ReceiveMessage"}
    assert calls["SendMessage"] == 1  # the others are repeated until the queue and the reply exist
