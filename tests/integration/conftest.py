"""Fixtures on the deployed stage: the clients and proxies of a rendezvous, and a realm of live."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from signalbox.clients.deployment import Deployment
from tests.integration.live.arvados_lab import lab
from tests.integration.live.stage import TrialRealm
from tests.integration.rendezvous.peers import DOORS, Parties
from tests.integration.shared.dead_letters import dead_letter_lines
from tests.integration.shared.function_errors import error_lines
from tests.postgres import cluster_database, postgres_server

__all__ = ["cluster_database", "lab", "postgres_server"]


@pytest.fixture(scope="session")
def all_parties(deployed: dict[str, Any], deployment: Deployment) -> Parties:
    """Return the clients and proxies of a rendezvous; clients have their limited key only."""
    return Parties.of_local(deployment, deployed)


@pytest.fixture
def door() -> str:
    """Return the door that proxies, and clients over HTTP, use."""
    return DOORS[0]


@pytest.fixture
def parties(all_parties: Parties, door: str) -> Parties:
    """Return the same at a door of an empty stage: no offer waits, and no recent poll is recorded."""
    all_parties.wait_until_nothing_waits()
    all_parties.forget_polls()
    return replace(all_parties, door=door)


@pytest.fixture(scope="session")
def place(deployed: dict[str, Any]) -> TrialRealm:
    """The realm for trials; its functions have begun, since a client has to join within 10 s."""
    place = TrialRealm.of(deployed)
    place.warm_up()
    return place


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the stage's dead letters and its functions' errors with a test that failed on it."""
    report = yield
    stage = item.funcargs.get("deployment") if isinstance(item, pytest.Function) else None
    if report.failed and isinstance(stage, Deployment):
        for name, lines in (("dead letters", dead_letter_lines), ("functions' errors", error_lines)):
            try:
                text = "\n".join(lines(stage)) or "none"
            except (BotoCoreError, ClientError) as problem:  # a stage that does not answer may be why the test failed
                text = f"not readable: {problem}"
            report.sections.append((f"the stage's {name}", text))
    return report
