"""The parties of a rendezvous on the deployed stage, and the realm of live for trials."""

from typing import Any

import pytest

from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.cli.shared.deployment import Deployment
from tests.integration.live.stage import TrialRealm
from tests.integration.rendezvous.peers import Parties


@pytest.fixture(scope="session")
def everybody(deployed: dict[str, Any], deployment: Deployment) -> Parties:
    """Everybody who takes part in a rendezvous; the client has its limited key and no other."""
    key = deployed["client_credentials"]
    return Parties.of(deployment, ClientCredentials(key["access_key_id"], key["secret_access_key"]))


@pytest.fixture
def parties(everybody: Parties) -> Parties:
    """The same on an empty stage: no offer waits, no poll is held, and no proxy is known to come by."""
    everybody.wait_until_nothing_waits()
    everybody.forget_polls()
    return everybody


@pytest.fixture(scope="session")
def place(deployed: dict[str, Any]) -> TrialRealm:
    """The realm for trials; its functions have begun, since a client has to join within 10 s."""
    place = TrialRealm.of(deployed)
    place.warm_up()
    return place
