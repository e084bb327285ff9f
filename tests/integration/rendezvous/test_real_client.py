"""Upstream's client, unchanged, against the deployed app."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.parts.rendezvous.clients import real_clients
from benchmarks.parts.rendezvous.original import build_client, build_transport
from benchmarks.parts.rendezvous.proxies import polling
from benchmarks.shared.stage import Stage
from signalbox.cli.main import app
from signalbox.clients.deployment import Deployment
from tests.integration.rendezvous.transport import connected, running_transport, socks_arguments
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]
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


def test_the_printed_bridge_line_works_as_it_is(
    deployed: dict[str, Any], deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upstream's client program takes the line that Tor gives it, uses its STUN servers and reaches a proxy."""
    monkeypatch.setattr("signalbox.cli.shared.deployment.find_deployment", lambda **_: deployment)
    printed = CliRunner().invoke(app, ["rendezvous", "credentials", "--json"], catch_exceptions=False).stdout
    shown = json.loads(printed)
    name, _, endpoint = shown["environment"].partition("=")
    arguments = socks_arguments(shown["bridge_line"])

    with (
        running_transport(build_transport(), tmp_path, {name: endpoint}) as listener,
        polling(Stage(deployed).signalbox().broker_url, 1) as proxies,
        connected(listener, arguments),
    ):
        wait_for(lambda: proxies.matches > 0, "an offer of the client at the proxy")

    log = (tmp_path / "log").read_text()
    assert "url: stun:" in log.split("Using ICE servers:")[1]
    assert "Warning: Parsing ICE server" not in log
