"""The summaries of exchanges."""

from datetime import UTC, datetime, timedelta

from signalbox.exchange.control.summary import CountedExchange, summary
from signalbox.exchange.model.records import ExchangeRecord, MinuteCounts
from signalbox.sarracenia.rights.names import ExchangeName

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
EXCHANGE = ExchangeRecord(ExchangeName("trial.fifo"), None, NOON)


def test_the_counts_of_all_minutes_are_added_up():
    minutes = [
        MinuteCounts(NOON, received=2, routed=1, dropped=1, last_at=NOON),
        MinuteCounts(
            NOON + timedelta(minutes=1), received=3, routed=3, rejected=4, last_at=NOON + timedelta(seconds=90)
        ),
    ]

    assert summary(CountedExchange(EXCHANGE.listed, minutes)) == {
        "name": "trial.fifo",
        "ordered": True,
        "received": 5,
        "routed": 4,
        "dropped": 1,
        "rejected": 4,
        "last_at": "2026-11-21T12:01:30+00:00",
    }


def test_an_exchange_without_messages_has_none():
    document = summary(CountedExchange(EXCHANGE.listed, ()))

    assert (document["received"], document["last_at"]) == (0, None)
