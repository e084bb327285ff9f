"""The block of upstream's metrics log."""

from datetime import date

from glue_jobs.texts.log_block import log_block


def test_a_day_without_events_is_a_block_of_zeros_with_a_space_for_empty_lists():
    lines = log_block(date(2026, 12, 31), {}).split("\n")

    assert lines[0] == "snowflake-stats-end 2027-01-01 00:00:00 (86400 s)"
    assert lines[1] == "snowflake-ips "
    assert lines[7] == "snowflake-ips-total 0"
    assert lines[-1] == ""


def test_countries_are_sorted_by_descending_number_and_then_by_code():
    shown = {("snowflake-ips", "BR"): 1, ("snowflake-ips", "CN"): 2, ("snowflake-ips", "??"): 1, ("other", "X"): 9}

    lines = log_block(date(2026, 11, 20), shown).split("\n")

    assert lines[1] == "snowflake-ips CN=2,??=1,BR=1"
