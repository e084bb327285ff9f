"""The activity of a stage: five numbers of each capability from the minutes of its metrics."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.activity.measures import (
    CAPABILITIES,
    IN_FLIGHT,
    MOST_MEASURES,
    OLDEST,
    SENT,
    VISIBLE,
    Measure,
    Sources,
    event_measure,
    function_measure,
    measures,
    queue_measure,
)
from signalbox.activity.questions import options_of
from signalbox.activity.summary import Activity, activities, beginning
from signalbox.history.prices import ACTION_PRICES, PriceRange
from signalbox.queues import QueueName

NOW = datetime(2026, 11, 23, 12, 30, 30, tzinfo=UTC)
BROKER, PARTS = QueueName("broker"), QueueName("xs_parts")
MINUTE = timedelta(minutes=1)
NOON = NOW.replace(minute=0, second=0)
NOTHING = dict.fromkeys(CAPABILITIES, tuple[QueueName, ...]())
SOURCES = Sources({**NOTHING, "rendezvous": (BROKER,)}, {"rendezvous": ("poll",)})


def activity(
    capability: str, values: Mapping[Measure, Mapping[datetime, float]], sources: Sources = SOURCES
) -> Activity:
    (found,) = [one for one in activities(sources, values, NOW) if one.capability == capability]
    return found


def at(minute: int) -> datetime:
    return NOON + minute * MINUTE


def test_every_capability_has_its_activity_in_one_order():
    found = activities(SOURCES, {}, NOW)

    assert [one.capability for one in found] == list(CAPABILITIES)
    assert {(one.rate, one.backlog, one.oldest, one.errors, one.usd) for one in found} == {(0, 0, None, 0, (0, 0))}


def test_the_rate_is_that_of_the_last_five_minutes_up_to_now():
    denied, delivered = event_measure("rendezvous", "OfferDenied"), event_measure("rendezvous", "AnswerDelivered")

    found = activity("rendezvous", {denied: {at(25): 900, at(26): 30, at(30): 10}, delivered: {at(30): 5}})

    assert found.rate == pytest.approx(45 / 270)
    assert found.minutes[-6:] == (900, 30, 0, 0, 0, 15)
    assert (len(found.minutes), found.since, sum(found.minutes)) == (60, beginning(NOW), 945)


def test_a_backlog_is_what_waits_and_what_is_in_work_now():
    values = {
        queue_measure(VISIBLE, BROKER): {at(1): 70, at(29): 4},
        queue_measure(IN_FLIGHT, BROKER): {at(29): 3},
        queue_measure(OLDEST, BROKER): {at(1): 500, at(29): 12.4},
    }

    found = activity("rendezvous", values)

    assert (found.backlog, found.oldest) == (7, timedelta(seconds=12.4))


def test_an_empty_queue_has_no_oldest_message():
    found = activity("rendezvous", {queue_measure(OLDEST, BROKER): {at(29): 12}})

    assert (found.backlog, found.oldest) == (0, None)


def test_errors_are_failed_runs_and_events_of_messages_that_were_refused():
    values = {
        event_measure("rendezvous", "BadInputRejected"): {at(2): 2},
        event_measure("rendezvous", "OfferStale"): {at(3): 1},
        event_measure("rendezvous", "TimeoutExpired"): {at(3): 50},
        event_measure("live", "DeadLetterDead"): {at(3): 7},
        function_measure("poll"): {at(4): 1},
    }

    assert activity("rendezvous", values).errors == 4
    assert activity("live", values).errors == 7


def test_the_cost_of_the_hour_is_that_of_the_actions_of_its_events():
    answers, refusals = event_measure("rendezvous", "AnswerDelivered"), event_measure("rendezvous", "OfferDenied")
    answer, refusal = ACTION_PRICES["rendezvous", "answer"], ACTION_PRICES["rendezvous", "refusal"]
    http, sqs = ACTION_PRICES["rendezvous", "client by HTTP"], ACTION_PRICES["rendezvous", "client by SQS"]
    event = ACTION_PRICES["history", "event"]

    found = {
        one.capability: one.usd for one in activities(SOURCES, {answers: {at(1): 1e6}, refusals: {at(2): 2e6}}, NOW)
    }

    assert found["rendezvous"].least == pytest.approx(answer.least + 2 * refusal.least + 3 * http.least)
    assert found["rendezvous"].most == pytest.approx(answer.most + 2 * refusal.most + 3 * sqs.most)
    assert found["history"] == pytest.approx((3 * event.least, 3 * event.most))
    assert found["exchange"] == PriceRange(0, 0)


def test_publications_are_counted_at_the_queues_of_exchanges():
    ordered = QueueName("xs_log.fifo")
    sources = Sources(NOTHING).with_queues(split=[], exchanges=[PARTS, ordered], declared=[])
    values = {queue_measure(SENT, PARTS): {at(30): 1e6}, queue_measure(SENT, ordered): {at(30): 1e6}}

    found = activity("exchange", values, sources)

    both = ACTION_PRICES["exchange", "publication"].most + ACTION_PRICES["exchange", "ordered publication"].most
    assert found.minutes[-1] == 2e6
    assert found.usd.most == pytest.approx(both)


def test_history_works_on_the_events_of_all_others():
    values = {
        event_measure("live", "SessionStarted"): {at(30): 3},
        event_measure("splitting", "SessionEnded"): {at(30): 4},
    }

    assert activity("history", values).minutes[-1] == 7


def test_one_call_has_the_queues_of_exchanges_splits_and_bindings_as_far_as_they_fit():
    nothing = {"queues": [], "functions": []}
    live = {"queues": ["inbox"], "functions": ["session"]}
    own = Sources.parse(json.dumps({**dict.fromkeys(CAPABILITIES, nothing), "live": live}))

    few = own.with_queues(
        split=[QueueName("orders"), PARTS], exchanges=[PARTS], declared=[QueueName("q_a"), QueueName("orders")]
    )
    many = own.with_queues(
        split=[QueueName(f"q{number}") for number in range(200)],
        exchanges=[QueueName(f"x{number}") for number in range(60)],
        declared=[QueueName("q_a")],
    )

    assert dict(few.queues) == {
        "rendezvous": (),
        "splitting": ("orders",),
        "exchange": (PARTS, "q_a"),
        "live": ("inbox",),
        "history": (),
    }
    assert MOST_MEASURES - 4 < len(list(measures(many))) + len(many.queues["splitting"]) <= MOST_MEASURES
    assert len(set(measures(few))) == len(list(measures(few)))
    assert len(many.published) == 60


def test_a_document_has_the_command_that_answers_each_number():
    found = {one.capability: one.document() for one in activities(SOURCES, {}, NOW)}

    assert found["exchange"] | {"minutes": []} == {
        "capability": "exchange",
        "unit": "messages",
        "rate": 0,
        "minutes": [],
        "backlog": 0,
        "oldest_seconds": None,
        "errors": 0,
        "usd_least": 0,
        "usd_most": 0,
        "questions": {
            "rate": "signalbox report topics",
            "backlog": "signalbox status",
            "oldest": "signalbox status",
            "errors": 'signalbox history query "SELECT occurred_at, kind, outcome, reason, message_id FROM events_raw '
            "WHERE dt >= '2026-11-23' AND capability = 'exchange' AND outcome IN ('dead') "
            'ORDER BY occurred_at DESC LIMIT 20"',
            "cost": "signalbox report cost",
            "more": "signalbox status",
        },
    }
    for one in found.values():
        assert set(one["questions"]) == {"rate", "backlog", "oldest", "errors", "cost", "more"}
    busy = activity(
        "rendezvous", {queue_measure(VISIBLE, BROKER): {at(30): 1}, queue_measure(OLDEST, BROKER): {at(30): 9}}
    )
    assert busy.document()["oldest_seconds"] == 9


@pytest.mark.parametrize(
    ("stage", "command"),
    [
        (None, "signalbox split status"),
        ("signalbox", "signalbox split status --aws"),
        ("prod", "signalbox split status --aws --stage prod"),
    ],
)
def test_commands_are_for_the_stage_whose_numbers_they_explain(stage, command):
    found = activity("splitting", {}).document(options=options_of(stage))

    assert found["questions"]["backlog"] == command
