"""The daily summary of rendezvous."""

from datetime import date

from signalbox.rendezvous.reporting.statistics import DayStatistics
from signalbox.rendezvous.reporting.summary import summary

DAY = date(2026, 11, 21)


def test_counts_that_could_identify_users_are_multiples_of_eight():
    counters = {
        "proxy_type|webext": 3,
        "proxy_nat|restricted": 2,
        "poll|restricted|idle|webext|with": 9,
        "answer|ca|restricted|sqs|webext": 1,
        "client_poll|ca|unknown|sqs|denied": 17,
        "client_poll|ca|unknown|sqs|timeout": 8,
    }

    assert summary(DayStatistics.from_counters(counters, DAY)) == {
        "day": "2026-11-21",
        "proxies": {"webext": 3},
        "nats": {"restricted": 2},
        "idle_polls": 16,
        "clients": {"matched": 8, "denied": 24, "timed_out": 8},
    }
