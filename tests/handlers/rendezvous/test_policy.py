"""The policy of rendezvous in a function's environment variables."""

from datetime import timedelta

from lambdas.rendezvous import wiring
from lambdas.shared import instance
from signalbox.aws.shared.settings import Settings
from signalbox.rendezvous.rules.policy import RendezvousPolicy

VARIABLES = {
    "OFFER_PATIENCE_SECONDS": "90",
    "HTTP_OFFER_PATIENCE_SECONDS": "9",
    "MATCH_PATIENCE_SECONDS": "2.5",
    "PROXY_RECENCY_SECONDS": "70",
    "CLIENT_QUEUE_LEASE_SECONDS": "150",
    "POLLS_PER_MINUTE": "7",
}


def test_the_policy_is_read_from_the_environment(monkeypatch) -> None:
    monkeypatch.setattr(instance, "settings", lambda: Settings(VARIABLES))

    found = wiring.policy.__wrapped__()

    assert found == RendezvousPolicy(*(timedelta(seconds=s) for s in (90, 9, 2.5, 70, 150)), polls_per_minute=7)
