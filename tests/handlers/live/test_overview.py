"""The function that answers the calls which `session` passes on."""

import json
import os
import signal
from datetime import UTC, datetime

import boto3
import pytest

from lambdas.live import overview
from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.exchange.model.records import User
from signalbox.live.outbox.overview_calls import OverviewCall
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.fakes.aws import aws, exchange_table, live_table, rendezvous_table, split_table, sqs  # noqa: F401 - fixtures
from tests.handlers.environment import Context, dead_letter_reason
from tests.handlers.live.live_stage import (  # noqa: F401 - fixtures
    INBOX,
    ORDERED_DEAD,
    OUTBOX,
    OVERVIEW,
    REALM,
    LiveStage,
    record_of,
    stage,
)
from tests.handlers.recorded_events import batch


@pytest.fixture
def admin(stage: LiveStage, rendezvous_table, split_table) -> LiveStage:  # noqa: F811
    """A stage with a joined administrator."""
    DynamoUsers(stage.exchanges).put(User(UserName("source"), Role.ADMIN, Ownership.STRICT, datetime.now(UTC), "AIDA"))
    stage.join()
    return stage


def test_calls_of_the_overview_procedures_are_answered(admin):
    boto3.client("s3").put_object(Bucket="history", Key="reports/a.svg", Body=b"<svg/>")

    assert admin.say("c1", 48, 1, {}, "signalbox.overview")[0][3][0]["exchanges"][0]["name"] == REALM
    assert admin.say("c1", 48, 2, {}, "signalbox.report", ["a.svg"]) == [[50, 2, {}, ["<svg/>"]]]
    assert admin.say("c1", 48, 3, {}, "signalbox.topics") == [[50, 3, {}, [[]], {"more": False}]]
    ((_, _, _, ((activity),)),) = admin.say("c1", 48, 5, {}, "signalbox.activity")
    assert [one["capability"] for one in activity["capabilities"]][2:] == ["exchange", "live", "history"]
    assert activity["capabilities"][2]["questions"]["more"] == "signalbox status --aws"
    assert admin.say("c1", 48, 4, {}, "wamp.session.count") == [[50, 4, {}, [1]]]


def test_a_call_that_is_answered_twice_has_one_reply(admin):
    call(admin, 48, 1, {}, "signalbox.topics")
    records = [record_of(message, OVERVIEW) for message in admin.taken(OVERVIEW)]

    for _ in range(2):
        assert overview.handler(batch(*records), None) == {"batchItemFailures": []}

    assert len(admin.replies("c1")) == 1


def test_a_call_that_fails_stays_in_flight_with_those_behind_it_and_is_answered_by_the_retry(admin):
    for number in (1, 2):
        call(admin, 48, number, {}, "signalbox.topics")
    admin.sqs.delete_queue(QueueUrl=admin.urls[OUTBOX])
    records = [record_of(message, OVERVIEW) for message in admin.taken(OVERVIEW)]

    failed = overview.handler(batch(*records), None)["batchItemFailures"]
    admin.make(OUTBOX)
    again = overview.handler(batch(*records), None)["batchItemFailures"]

    assert [one["itemIdentifier"] for one in failed] == [record["messageId"] for record in records]
    assert again == []
    assert [reply[1] for reply in admin.replies("c1")] == [1, 2]


def test_calls_for_which_an_invocation_has_no_time_are_answered_by_the_next_one(admin):
    for number in (1, 2, 3):
        call(admin, 48, number, {}, "signalbox.activity")

    assert len(admin.process(OVERVIEW, Context(0))) == 2
    assert admin.process(OVERVIEW, wait=20) == []

    assert [reply[1] for reply in admin.replies("c1")] == [1, 2, 3]


def test_an_unreadable_message_becomes_a_dead_letter_and_blocks_no_other(admin):
    admin.send("c1", "nonsense", queue=OVERVIEW)
    call(admin, 48, 1, {}, "signalbox.topics")

    assert admin.process(OVERVIEW) == []

    (letter,) = admin.taken(ORDERED_DEAD)
    assert (letter["Body"], letter["Attributes"]["MessageGroupId"]) == ("nonsense", "c1")
    assert dead_letter_reason(letter).startswith("a message of 8 characters is not a call: JSONDecodeError")
    assert len(admin.replies("c1")) == 1
    assert ("dead_letter", "dead") in admin.history()


def test_a_call_that_stops_its_reader_becomes_a_dead_letter(admin, monkeypatch):
    admin.send("c1", "poison", queue=OVERVIEW)
    (record,) = [record_of(message, OVERVIEW) for message in admin.taken(OVERVIEW)]
    record["attributes"]["ApproximateReceiveCount"] = "5"
    monkeypatch.setattr(OverviewCall, "parse", lambda _: os.kill(os.getpid(), signal.SIGSEGV))

    assert overview.handler(batch(record), None) == {"batchItemFailures": []}

    (letter,) = admin.taken(ORDERED_DEAD)
    assert (letter["Body"], dead_letter_reason(letter)) == ("poison", "reading it ends the process with SIGSEGV")


def call(stage, *message):  # noqa: F811
    """Have `session` pass on a call, without answering it."""
    stage.send("c1", f"f{json.dumps(message)}")
    assert stage.process() == []
