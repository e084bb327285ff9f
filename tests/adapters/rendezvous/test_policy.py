"""The policy of rendezvous in a function's environment variables."""

from datetime import timedelta

from signalbox.aws.rendezvous.policy import policy_of
from signalbox.aws.shared.settings import Settings
from signalbox.rendezvous.rules.matching import RendezvousPolicy


def test_the_policy_is_read_from_the_environment() -> None:
    settings = Settings({"POLL_HOLD_SECONDS": "2.5", "POLL_HOLD_LIMIT": "7", "OFFER_PATIENCE_SECONDS": "90"})

    assert policy_of(settings) == RendezvousPolicy(
        poll_hold=timedelta(seconds=2.5), poll_hold_limit=7, sqs_patience=timedelta(seconds=90)
    )


def test_a_variable_that_is_not_set_keeps_the_default() -> None:
    assert policy_of(Settings({})) == RendezvousPolicy()
