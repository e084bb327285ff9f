"""The page of counters for Prometheus, on the deployed app."""

import pytest

from signalbox.rendezvous.wire.nat import Nat
from tests.integration.rendezvous.peers import HttpResponse, Parties, at_doors
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, at_doors]


def page_with(parties: Parties, sample: str) -> HttpResponse | None:
    """Return the page if it has the sample; an instance makes it once in ten seconds."""
    response = parties.http("GET", "prometheus")
    return response if sample in response.body else None


def test_prometheus_gets_counters_in_steps_of_eight(parties: Parties):
    proxy = parties.wait(parties.proxy(Nat.RESTRICTED, comes_from="8.8.4.7"))
    asked = parties.ask(Nat.UNRESTRICTED)
    assert parties.reply(asked.client_id) == asked.answer
    assert proxy.served.result().accepted
    parties.http("POST", "proxy", "not json")

    response = wait_for(lambda: page_with(parties, 'bad_input_total{source="proxy"}'), "a page that is made anew")

    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
    assert not {"access-control-allow-origin", "access-control-allow-headers"} & response.headers.keys()
    counters = dict(line.rsplit(" ", 1) for line in response.body.splitlines() if not line.startswith("#"))
    rounded = {name: int(value) for name, value in counters.items() if "_rounded_" in name}
    assert {value % 8 for value in rounded.values()} == {0}
    matched = 'snowflake_rounded_client_poll_total{cc="??",nat="unrestricted",rendezvous_method="sqs",status="matched"}'
    polled = 'snowflake_rounded_proxy_poll_total{nat="restricted",status="matched",type="standalone"}'
    for name in (matched, polled, 'signalbox_rounded_bad_input_total{source="proxy"}'):
        assert rounded[name] >= 8
    assert int(counters['snowflake_proxy_total{cc="??",nat="restricted",type="standalone"}']) >= 1
