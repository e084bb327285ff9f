"""The demo of an unchanged stage is shown from its record."""

from datetime import UTC, datetime

import pytest

from signalbox.local.demo.record import record, recorded
from signalbox.verify.report import Row, TrialOutcome

LOCAL = {"deployment": {"sources": "one"}, "admin_credentials": {"access_key_id": "AKIA1"}}
ROWS = [Row("live", "log", TrialOutcome.OK, detail="20 lines")]
NOW = datetime(2026, 11, 23, 14, 3, tzinfo=UTC)


def test_the_demo_of_the_same_stage_is_found(tmp_path):
    record(tmp_path, LOCAL, ROWS, now=NOW)

    assert recorded(tmp_path, LOCAL) == ("2026-11-23 14:03:00", ROWS)


@pytest.mark.parametrize(
    "changed",
    [{"deployment": {"sources": "two"}}, {"admin_credentials": {"access_key_id": "AKIA2"}}],
    ids=["other sources", "another emulator"],
)
def test_the_demo_of_another_stage_is_not_found(tmp_path, changed):
    record(tmp_path, LOCAL, ROWS, now=NOW)

    assert recorded(tmp_path, LOCAL | changed) is None


def test_without_a_record_nothing_is_found(tmp_path):
    assert recorded(tmp_path, LOCAL) is None
