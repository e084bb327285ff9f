"""The text of the splitting report."""

from datetime import date

from glue_jobs.texts.split_text import Line, split_text


def test_a_day_without_events_is_a_head_of_zeros_without_times():
    assert split_text(date(2026, 12, 31), []) == (
        "split-report-end 2027-01-01 00:00:00 (86400 s)\n"
        "routed session=0 deployed=0 copied=0\n"
        "returned session=0 deployed=0 original=0\n"
        "dead_letters dead=0\n"
        "sessions started=0 ready=0 ended=0\n"
    )


def test_each_queue_has_a_block():
    lines = [
        Line("dead_letter", "memes", None, None, 1),
        Line("dead_letter", "memes", None, "too large", 2),
        Line("dead_letter-total", None, None, "dead", 3),
        Line("returned", "memes", None, "original", 1),
        Line("returned", "memes", "ann", "deployed", 4),
        Line("routed", "memes", None, "deployed", 5),
        Line("routed", "memes", "ann", "session", 6),
        Line("routed", "ads", "eve", "copied", 7),
        *(Line("time-to-route-ms", queue, None, f"p{n}", n) for queue in (None, "memes") for n in (50, 95, 99)),
    ]

    head, ads, memes = split_text(date(2026, 11, 21), lines).split("\n\n")

    assert head.splitlines()[3:] == [
        "dead_letters dead=3",
        "sessions started=0 ready=0 ended=0",
        "time-to-route-ms p50=50 p95=95 p99=99",
    ]
    assert ads == "queue ads\n  copied to eve 7"
    assert memes.splitlines() == [
        "queue memes",
        "  dead 1: no reason",
        "  dead 2: too large",
        "  returned by deployed to original 1",
        "  returned by ann to deployed 4",
        "  routed to deployed 5",
        "  routed to ann 6",
        "  time-to-route-ms p50=50 p95=95 p99=99",
    ]
