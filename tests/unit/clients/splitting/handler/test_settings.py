"""Settings of functions and event source mappings."""

from datetime import timedelta

import pytest

from signalbox.clients.splitting.handler.settings import (
    FunctionSettings,
    InvalidHandlerSettings,
    MappingSettings,
    Overrides,
)


def test_a_mapping_without_settings_has_lambdas_defaults():
    assert MappingSettings.of({}) == MappingSettings(10, timedelta(), reports_failures=False)


def test_a_mappings_settings_are_read():
    settings = MappingSettings.of(
        {
            "BatchSize": 100,
            "MaximumBatchingWindowInSeconds": 5,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "FilterCriteria": {"Filters": [{"Pattern": '{"body": ["x"]}'}]},
        }
    )

    assert (settings.batch_size, settings.window, settings.reports_failures) == (100, timedelta(seconds=5), True)
    assert settings.filters.patterns == ({"body": ["x"]},)


@pytest.mark.parametrize(
    ("size", "seconds", "is_fifo", "problem"),
    [
        (0, 0, False, "not between 1 and 10000"),
        (10_001, 1, False, "not between 1 and 10000"),
        (11, 1, True, "not between 1 and 10"),
        (1, 301, False, "not between 0 and 300"),
        (1, 1, True, "a FIFO queue has no window"),
        (11, 0, False, "needs a window of at least 1 s"),
    ],
)
def test_batches_that_lambda_refuses_are_refused(size, seconds, is_fifo, problem):
    with pytest.raises(InvalidHandlerSettings, match=problem):
        MappingSettings(size, timedelta(seconds=seconds)).check(is_fifo=is_fifo)


def test_batches_that_lambda_takes_are_taken():
    MappingSettings(10_000, timedelta(seconds=300)).check(is_fifo=False)
    MappingSettings(10).check(is_fifo=True)


@pytest.mark.parametrize("seconds", [0, 901])
def test_a_timeout_that_lambda_refuses_is_refused(seconds):
    with pytest.raises(InvalidHandlerSettings, match="not between 1 and 900"):
        FunctionSettings("f", "arn", timeout=timedelta(seconds=seconds)).check()


def test_options_override_and_absent_ones_do_not():
    mapping, function = MappingSettings(5, reports_failures=True), FunctionSettings("f", "arn")
    options = Overrides(batch_size=2, window_seconds=3, timeout_seconds=4, reports_failures=False)

    assert Overrides().of_mapping(mapping) == mapping
    assert Overrides().of_function(function) == function
    assert options.of_mapping(mapping) == MappingSettings(2, timedelta(seconds=3), reports_failures=False)
    assert options.of_function(function).timeout == timedelta(seconds=4)
