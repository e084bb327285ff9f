"""`signalbox dead-letters` against a stage."""

import json
import shlex
from collections.abc import Iterator

import boto3
import pytest

from signalbox.errors import RejectedError
from tests.cli.exchange.stage import exchange_stage, queue, signalbox
from tests.cli.shared.stage import FakeStage
from tests.fakes.aws import aws  # noqa: F401 - a fixture

MARKS = {"Reason": "no topic", "OriginalMessageId": "id-1"}


@pytest.fixture
def stage(aws) -> Iterator[FakeStage]:  # noqa: F811
    with exchange_stage() as stage:
        for name in ("xpublic-dlq", "xs_alice-dlq", "q_alice-dlq"):
            queue(name)
        yield stage


def bury(name: str, **texts: str) -> None:
    sqs = boto3.client("sqs")
    attributes = {key: {"DataType": "String", "StringValue": text} for key, text in texts.items()}
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="secret", MessageAttributes=attributes)


def listed(*arguments: str) -> list[dict]:
    result = signalbox("dead-letters", *arguments, "--json")
    assert "secret" not in result.stdout
    return json.loads(result.stdout)


def test_each_has_its_reason_and_its_remedy_and_stays(stage):
    bury("xpublic-dlq", topic="a.b", **MARKS)
    bury("q_alice-dlq", message_id="id-2", exchange="xpublic", topic="a.b", publisher="_", published_at="1")

    first, second = listed()
    assert (first["name"], first["message_id"], first["reason"], first["receives"]) == (
        "xpublic",
        "id-1",
        "no topic",
        0,
    )
    assert first["remedy"] == "signalbox replay --dead-letters xpublic --into xpublic"
    assert (second["name"], second["message_id"]) == ("q_alice", "id-2")
    assert second["reason"].startswith("its consumers received it as often as its queue allows")
    assert second["remedy"] == "signalbox replay --dead-letters q_alice --into q_alice"
    assert {one["receives"] for one in listed()} == {1}  # the call before


def test_what_no_exchange_can_accept_is_not_to_be_replayed(stage):
    for name in ("xpublic-dlq", "q_alice-dlq"):
        bury(name, **MARKS)

    remedies = {one["remedy"] for one in listed()}
    assert remedies == {"publish it again, corrected, and delete it: no replay can"}


def test_an_administrator_sees_those_of_the_stage(stage):
    url = queue("dead-offers")
    bury("dead-offers", **MARKS)

    (only,) = listed()
    assert (only["capability"], only["name"], only["queue_url"]) == ("rendezvous", "dead-offers", url)


def test_a_user_sees_what_the_user_owns(stage):
    bury("xpublic-dlq", **MARKS)
    bury("q_alice-dlq", **MARKS)

    assert [one["name"] for one in listed("--user", "alice")] == ["q_alice"]


def test_a_longer_queue_is_cut_and_says_so(stage):
    for number in range(3):
        bury("xpublic-dlq", **MARKS | {"OriginalMessageId": f"id-{number}"})

    result = signalbox("dead-letters", "xpublic", "--max", "2")
    assert result.stdout.count("no topic") == 2
    assert "receives: by consumers and by each list before" in result.stderr
    assert "xpublic has about 3, of which 2 are shown" in result.stderr


def test_dead_letters_in_flight_are_counted(stage):
    bury("q_alice-dlq", **MARKS)
    sqs = boto3.client("sqs")
    sqs.receive_message(QueueUrl=sqs.get_queue_url(QueueName="q_alice-dlq")["QueueUrl"])

    assert signalbox("dead-letters").stderr == "· q_alice has about 1, of which 0 are shown; not those in flight\n"


def test_without_any_there_is_a_line(stage):
    assert signalbox("dead-letters").stdout == "no dead letters\n"


def test_names_of_nothing_are_refused_with_the_nearest(stage):
    with pytest.raises(RejectedError, match=r"(?s)you own no exchange and no queue 'xpublik'; did you.*no queue 'zz'"):
        signalbox("dead-letters", "xpublik", "zz")


def test_a_remedy_is_one_command_whatever_a_queue_is_called(stage):
    hostile = "q_eve; touch /tmp/owned #"
    stage.replies["queues"] = lambda _: [{"queue": hostile, "owner": "eve", "sqs_name": "q_eve"}]
    queue("q_eve-dlq")
    bury("q_eve-dlq", topic="a.b", **MARKS)

    (only,) = listed()
    assert shlex.split(only["remedy"]) == ["signalbox", "replay", "--dead-letters", hostile, "--into", hostile]
