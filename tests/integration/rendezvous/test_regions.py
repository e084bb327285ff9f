"""Three regions that share their proxies: upstream's clients, and a region that is cut off in the middle."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.parts.rendezvous.clients import Exchange, real_clients
from benchmarks.parts.rendezvous.original import build_client
from benchmarks.parts.rendezvous.proxies import polling
from signalbox.cli.shared.deployment import Deployment
from signalbox.local.stage_folder import StageFolder
from tests.integration.rendezvous.peers import Parties
from tests.integration.rendezvous.regions import FAR, HOME, NEAR, RegionalStages, deploy, synthesize

pytestmark = [pytest.mark.emulator, pytest.mark.minutes(1)]


@pytest.fixture(scope="module")
def regions(
    stage_folder: StageFolder, deployment: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> RegionalStages:
    """Stages in three regions of the emulator of the deployed stage."""
    return deploy(stage_folder, synthesize(tmp_path_factory.mktemp("regions") / "assembly"), deployment)


@pytest.fixture(scope="module")
def client() -> Path:
    """Upstream's client, built from its published Go module."""
    return build_client()


def results(exchanges: list[Exchange]) -> list[tuple[str, bool]]:
    return [(exchange.error, exchange.is_right) for exchange in exchanges]


def test_a_region_that_is_cut_off_in_the_middle_loses_no_offer(regions: RegionalStages, client: Path) -> None:
    """Clients of all regions meet the proxies of two; an offer of the region that goes away is answered afterwards."""
    ask = real_clients(client)
    home, near, far = (regions.side(region) for region in (HOME, NEAR, FAR))
    parties = {region: Parties.of(one, regions.key(region)) for region, one in regions.deployments.items()}
    with polling(home.broker_url, 2), polling(far.broker_url, 1), ThreadPoolExecutor() as threads:
        for one in parties.values():  # starts the functions: upstream's client gives up after five seconds
            first = one.ask()
            assert one.reply(first.client_id, seconds=60) == first.answer
        before = ask(near, 2, 2)  # no proxy polls in their region
        asked = parties[NEAR].ask()
        with regions.cut_off(NEAR):
            during = [*threads.map(lambda side: ask(side, 4, 2), (home, far))]
        reply = parties[NEAR].reply(asked.client_id, seconds=60)
        after = ask(near, 2, 2)

    exchanges = [*before, *during[0], *during[1], *after]
    assert results(exchanges) == [("", True)] * 12
    assert reply == asked.answer
    assert [one.dead_letters() for one in parties.values()] == [0, 0, 0]
