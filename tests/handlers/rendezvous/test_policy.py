"""The policy of rendezvous in a function's environment variables."""

from datetime import timedelta

import pytest

from lambdas.rendezvous import wiring
from lambdas.shared import instance
from signalbox.aws.shared.settings import Settings
from signalbox.rendezvous.rules.policy import RendezvousPolicy


@pytest.fixture(autouse=True)
def new_instance():
    wiring.policy.cache_clear()
    yield
    wiring.policy.cache_clear()


def test_the_policy_is_read_from_the_environment(monkeypatch) -> None:
    variables = {"POLLS_PER_MINUTE": "7", "MATCH_PATIENCE_SECONDS": "2.5", "OFFER_PATIENCE_SECONDS": "90"}
    monkeypatch.setattr(instance, "settings", lambda: Settings(variables))

    assert wiring.policy() == RendezvousPolicy(
        match_patience=timedelta(seconds=2.5), polls_per_minute=7, sqs_patience=timedelta(seconds=90)
    )


def test_a_variable_that_is_not_set_keeps_the_default(monkeypatch) -> None:
    monkeypatch.setattr(instance, "settings", lambda: Settings({}))

    assert wiring.policy() == RendezvousPolicy()
