"""The outages of the soak: one service after the other, with a pause after each."""

import json

from signalbox.local.stage_folder import StageFolder
from tests.soak.outages import Outages


def test_services_are_away_one_after_the_other(tmp_path):
    folder = StageFolder(tmp_path)
    folder.emulator.mkdir()
    outages = Outages(folder, ["kms", "eks"], away_seconds=3, back_seconds=2, lead_seconds=1)
    folder.outages.write_text("[]")
    seen = []

    for second in range(int(outages.seconds) + 1):
        outages.update(second)
        seen.append(json.loads(folder.outages.read_text()))

    assert seen == [[], *[["kms"]] * 3, *[[]] * 3, *[["eks"]] * 3, *[[]] * 3]
    assert len(outages.past) == 2


def test_at_the_end_all_services_answer(tmp_path):
    folder = StageFolder(tmp_path)
    folder.emulator.mkdir()
    outages = Outages(folder, ["kms"], lead_seconds=0)
    outages.update(0)

    outages.end()

    assert json.loads(folder.outages.read_text()) == []
    assert [outage.begin <= outage.end for outage in outages.past] == [True]
