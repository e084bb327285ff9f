"""Fixtures on the deployed stage: the clients and proxies of a rendezvous, and a realm of live."""

from typing import Any

import pytest

from signalbox.cli.shared.deployment import Deployment
from tests.integration.live.stage import TrialRealm
from tests.integration.rendezvous.peers import Parties
from tests.postgres import cluster_database, postgres_server

__all__ = ["cluster_database", "postgres_server"]


@pytest.fixture(scope="session")
def all_parties(deployed: dict[str, Any], deployment: Deployment) -> Parties:
    """Return the clients and proxies of a rendezvous; clients have their limited key only."""
    return Parties.of_local(deployment, deployed)


@pytest.fixture
def parties(all_parties: Parties) -> Parties:
    """Return the same on an empty stage: no offer waits, no poll is held, and no recent poll is recorded."""
    all_parties.wait_until_nothing_waits()
    all_parties.forget_polls()
    return all_parties


@pytest.fixture(scope="session")
def place(deployed: dict[str, Any]) -> TrialRealm:
    """The realm for trials; its functions have begun, since a client has to join within 10 s."""
    place = TrialRealm.of(deployed)
    place.warm_up()
    return place
