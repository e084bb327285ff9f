"""Services that are away: everything waits, and goes on by itself. How late it comes depends on the machine."""

import sys
from typing import Any

import pytest

from signalbox.local.stage_folder import StageFolder
from tests.fault_injection.outages import AWAY
from tests.soak.outages import Outages
from tests.soak.run import Soak

pytestmark = [pytest.mark.emulator, pytest.mark.release]

# On the local stage a batch that failed comes again after a quarter of a minute.
AWAY_SECONDS, BACK_SECONDS = 60.0, 30.0
NO_KILLS = (10_000.0, 10_000.0)
KINDS = {"exchange, standard", "exchange, ordered", "splitting, standard", "splitting, FIFO", "live"}


@pytest.mark.parametrize("service", AWAY)
def test_no_message_dies_of_an_outage_and_all_arrive_in_order_after_it(
    deployed_with_faults: dict[str, Any], faulty_stage_folder: StageFolder, faults: int, service: str
):
    outages = Outages(faulty_stage_folder, [service], AWAY_SECONDS, BACK_SECONDS)
    soak = Soak(deployed_with_faults, faulty_stage_folder, faults, _say, NO_KILLS, outages=outages)

    done = soak.round(seconds=outages.seconds, counts={})

    _say(str(done))
    accounts = {one.kind: one for one in done.accounts}
    assert [text for one in accounts.values() if not one.is_kept for text in one.examples] == []
    assert {kind for kind, one in accounts.items() if one.sent} == KINDS
    assert not [reason for reason in done.dead_letters if "no reason" in reason]


def _say(text: str) -> None:
    sys.stdout.write(f"\n{text}\n")
