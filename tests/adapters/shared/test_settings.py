"""Settings in a function's environment, and its clock."""

from datetime import UTC, datetime, timedelta

import pytest

from signalbox.aws.shared.settings import Settings, SystemClock


def test_a_variable_is_read_as_text_as_a_number_or_as_seconds() -> None:
    settings = Settings({"STAGE": "signalbox", "LIMIT": "7", "HOLD_SECONDS": "2.5"})

    assert settings.text("STAGE") == "signalbox"
    assert settings.number("LIMIT") == 7
    assert settings.seconds("HOLD_SECONDS") == timedelta(seconds=2.5)


def test_a_missing_setting_is_an_error_with_its_name() -> None:
    with pytest.raises(KeyError, match="STAGE"):
        Settings({}).text("STAGE")


def test_a_setting_of_a_capability_that_the_stage_lacks_is_absent() -> None:
    settings = Settings({"LIVE_TABLE": "Live"})

    assert (settings.has("LIVE_TABLE"), settings.has("SPLIT_TABLE")) == (True, False)


def test_the_clock_is_in_utc_and_waits() -> None:
    clock = SystemClock()
    before = datetime.now(UTC)

    clock.sleep(0.01)

    assert clock.now() - before >= timedelta(seconds=0.01)
