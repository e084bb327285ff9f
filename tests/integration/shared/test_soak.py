"""The short form of `make soak`: all capabilities at once under faults and kills, and an account of every message."""

import sys
from typing import Any

import pytest

from signalbox.local.stage_folder import StageFolder
from tests.soak.run import Soak

pytestmark = [pytest.mark.emulator, pytest.mark.release]

SECONDS, READS_SECONDS = 25.0, 8.0
# The emulator of a machine with two cores starts a killed function in some seconds, and `make test` keeps them busy.
BETWEEN_KILLS = (1.5, 3.0)
LEAST_SENT = {"exchange, standard": 200, "exchange, ordered": 100, "splitting, standard": 50, "splitting, FIFO": 50}
LEAST_EVENTS, LEAST_KILLS = 40, 8
PATIENCE_SECONDS = 300.0  # returning a session's messages takes two visibility timeouts of 40 s, and kills more


def test_nothing_is_lost_or_reordered_while_functions_are_killed_and_faults_occur(
    deployed_with_faults: dict[str, Any], faulty_stage_folder: StageFolder, faults: int
):
    soak = Soak(
        deployed_with_faults,
        faulty_stage_folder,
        faults,
        _say,
        BETWEEN_KILLS,
        READS_SECONDS,
        PATIENCE_SECONDS,
        LEAST_KILLS,
    )

    done = soak.round(seconds=SECONDS, counts={**dict.fromkeys(("exchange", "splitting"), 400), "live": LEAST_EVENTS})

    _say(str(done))
    accounts = {one.kind: one for one in done.accounts}
    assert [text for one in accounts.values() if not one.is_kept for text in one.examples] == []
    assert [kind for kind, least in LEAST_SENT.items() if accounts[kind].sent < least] == []
    assert accounts["live"].sent >= LEAST_EVENTS * accounts["live"].receivers
    assert done.kills >= LEAST_KILLS
    assert done.counts["splitting: sessions"] > 0
    assert sum(count for what, count in done.counts.items() if what.startswith("rendezvous")) > 0


def _say(text: str) -> None:
    sys.stdout.write(f"\n{text}\n")
