"""The arguments of jobs and their time window."""

import importlib.util
import sys
from datetime import UTC, date, datetime, timedelta

import pytest

from glue_jobs.shared import arguments
from glue_jobs.shared.arguments import TimeWindow
from signalbox.local import tools

GLUE = "AWSGlueDataplanePython==5.1.0"
SCHEDULED = "2026-11-21T10:03:27Z"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "start", "end"),
    [
        ({"day": "2026-11-20"}, "2026-11-20", "2026-11-21"),
        ({"day": "2026-11-20", "days": "3"}, "2026-11-18", "2026-11-21"),
        ({"day": SCHEDULED}, "2026-11-20", "2026-11-21"),
        ({"day": "2026-11-21T00:30:00+02:00"}, "2026-11-19", "2026-11-20"),
        ({"from": "2026-11-20", "to": "2026-11-21T06:30"}, "2026-11-20", "2026-11-21 06:30"),
        ({"to": SCHEDULED, "hours": "2"}, "2026-11-21 08:00", "2026-11-21 10:00"),
        ({"from": "2026-11-20T07:00+01:00", "hours": "1"}, "2026-11-20 06:00", "2026-11-20 07:00"),
    ],
    ids=str,
)
def test_a_window_is_given_by_days_or_by_two_of_start_end_and_hours(given, start, end):
    assert TimeWindow.parse(given) == TimeWindow(at(start), at(end))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "the arguments of the window are missing; give --day"),
        ({"day": "2026-11-20", "to": "2026-11-21"}, "the arguments of the window are --day, --to; give"),
        ({"days": "2"}, "the arguments of the window are --days; give"),
        ({"day": "2026-11-20", "days": "0"}, "--days is 0; it must be at least 1"),
        ({"from": "2026-11-21", "to": "2026-11-21"}, "is empty; it must end after it starts"),
    ],
    ids=str,
)
def test_incomplete_arguments_of_a_window_raise_with_the_remedy(given, message):
    with pytest.raises(ValueError, match=message):
        TimeWindow.parse(given)


def test_a_window_overlaps_the_days_from_its_start_to_before_its_end():
    window = TimeWindow(at("2026-11-20 22:00"), at("2026-11-22"))

    assert window.days == (date(2026, 11, 20), date(2026, 11, 21))
    assert not window.is_whole_days
    assert window.whole_days() == TimeWindow(at("2026-11-20"), at("2026-11-22"))
    assert window.whole_days().is_whole_days
    assert window.widened(before=timedelta(hours=22), after=timedelta(0)) == window.whole_days()


@pytest.fixture(params=["on Glue", "elsewhere"])
def command_line(request, monkeypatch):
    """Parse with Glue's parser, and with Python's where Glue's is not installed."""
    if request.param == "elsewhere":
        monkeypatch.setitem(sys.modules, "awsglue.utils", None)
    elif importlib.util.find_spec("awsglue") is None:
        # Its wheel is for Python 3.11, which Glue runs; the parser is plain Python, and runs in every version.
        home = tools.TOOLS / GLUE.replace("==", "-")
        tools.install_once(home, lambda unfinished: tools.install_wheel(unfinished, GLUE, python_version="3.11"))
        monkeypatch.syspath_prepend(home)


def test_arguments_are_parsed_among_glues_own(command_line):
    argv = ["job.py", "--JOB_NAME", "j", "--database", "d", "--days=2", "--other", "x"]

    given = arguments.parse_arguments(argv, ["database"], optional=["day", "days"])

    assert given == {"database": "d", "days": "2"}


def test_the_last_days_of_a_window_are_at_most_the_window():
    window = TimeWindow(at("2026-11-20"), at("2026-11-22"))

    assert window.last_days(1) == TimeWindow(at("2026-11-21"), at("2026-11-22"))
    assert window.last_days(3) == window
    with pytest.raises(ValueError, match="a window has at least 1 day, not 0"):
        window.last_days(0)
