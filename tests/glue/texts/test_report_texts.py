"""The lines of report texts; test_exchange_reports.py tests the texts of whole jobs."""

from datetime import date

import pytest

from glue_jobs.pictures.order import order_picture
from glue_jobs.texts.delivery_text import delivery_text
from glue_jobs.texts.order_text import order_text
from glue_jobs.texts.report_text import titled_list
from glue_jobs.transforms.deliveries import COUNTS, TIMES

DAY = date(2026, 11, 21)
COUNTED = [{"finding": "audited", "rows": 1, "number": 9}, {"finding": "gap", "rows": 2, "number": 8}]


def gap(first: int, last: int) -> dict[str, object]:
    where = {"exchange": "x.fifo", "topic": "wx", "queue": "q_a", "finding": "gap"}
    numbers = {"first_sequence": first, "last_sequence": last, "number": last - first + 1}
    causes = {"dead": 1, "waiting": 0, "elsewhere": None, "nowhere": None}
    proof = {"before_event_id": "a1", "before_at": "2026-11-20 10:00:00.000"}
    return where | numbers | causes | proof | {"after_event_id": "a9", "after_at": "2026-11-21 10:00:00.000"}


def test_a_gap_is_listed_with_its_numbers_causes_and_events():
    proof = "a1 at 2026-11-20 10:00:00.000, a9 at 2026-11-21 10:00:00.000"

    text = order_text(DAY, [gap(2, 8), gap(10, 10)], counts=COUNTED)

    assert text.splitlines()[2:] == [
        "gap=2 duplicate=0 reordered=0",
        "",
        "gap (2)",
        f"  x.fifo wx → q_a: 2 to 8 (dead=1 waiting=0); {proof}",
        f"  x.fifo wx → q_a: 10 (dead=1 waiting=0); {proof}",
    ]


def test_a_name_adds_no_line_to_a_report():
    row = gap(10, 10) | {"topic": "wx\n\nnothing is missing\u202e"}

    assert "  x.fifo wx\\n\\nnothing is missing\\u202e → q_a: 10 (" in order_text(DAY, [row], counts=COUNTED)


@pytest.mark.parametrize(("first", "last", "shown"), [(2, 8, "wx → q_a 2 to 8"), (10, 10, "wx → q_a 10")])
def test_the_picture_names_the_numbers_of_a_gap(first, last, shown):
    assert f">{shown}</text>" in order_picture(DAY, [gap(first, last)], counts=COUNTED)


def test_a_capability_with_only_dead_letters_has_no_times():
    of_none = dict.fromkeys(("hour", "source", "destination", "reason", *TIMES))
    row = dict.fromkeys(COUNTS, 0) | of_none | {"section": "capability", "rank": 1, "of": 1, "capability": "exchange"}

    assert delivery_text(DAY, [row | {"dead": 3}]).splitlines()[1:] == [
        "exchange delivered=0 again=0 retried=0 dead=3 bytes=0"
    ]


def test_a_truncated_list_has_its_full_size_and_an_empty_list_is_omitted():
    assert titled_list("topics", ["a", "b"], of=12) == ["", "topics (2 of 12)", "  a", "  b"]
    assert titled_list("topics", [], of=0) == []
