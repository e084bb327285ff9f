"""A queue takes the dead letters of the queues that its `RedriveAllowPolicy` names, and of no others."""

import json

import pytest
from botocore.exceptions import ClientError

from signalbox.local.emulator.patches.redrive_policies import is_allowed, sources_of, with_sources_in_events
from tests.local.emulator.functions import make_function

ARNS = "arn:aws:sqs:us-east-1:000000000000:"
DENY_ALL = json.dumps({"redrivePermission": "denyAll"})
BY_QUEUE = json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [ARNS + "source"]})
FORWARD_SOURCES = (
    "import boto3, os\n"
    "def handler(event, context):\n"
    "    for record in event['Records']:\n"
    "        source = record['attributes'].get('DeadLetterQueueSourceArn', 'none')\n"
    "        boto3.client('sqs').send_message(QueueUrl=os.environ['TARGET'], MessageBody=source)\n"
)


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        (None, True),
        (json.dumps({"redrivePermission": "allowAll"}), True),
        (DENY_ALL, False),
        (BY_QUEUE, True),
        (json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [ARNS + "other"]}), False),
        (json.dumps({"redrivePermission": "byQueue"}), False),
    ],
)
def test_the_policy_decides_on_a_source(policy, allowed):
    assert is_allowed(ARNS + "source", policy) is allowed


def test_the_sources_of_a_queue_are_those_that_name_it():
    redrive = json.dumps({"deadLetterTargetArn": ARNS + "dead", "maxReceiveCount": 1})
    dead = {"attributes": {"QueueArn": ARNS + "dead"}}
    queues = {
        "url/source": {"attributes": {"RedrivePolicy": redrive}},
        "url/other": {"attributes": {"RedrivePolicy": redrive.replace("dead", "elsewhere", 1)}},
        "url/broken": {"attributes": {"RedrivePolicy": "{"}},
        "url/dead": dead,
    }

    assert sources_of(dead, queues) == {"queueUrls": ["url/source"]}


def test_an_event_has_the_source_of_a_moved_message():
    batch = [{"id": "1", "sys": {"DeadLetterQueueSourceArn": ARNS + "source"}}, {"id": "2"}]
    event = {"Records": [{"messageId": one["id"], "attributes": {}} for one in batch]}
    run = with_sources_in_events(lambda _mapping, _function, event, _batch, queue: (event, queue))

    changed, queue = run("mapping", "function", event, batch, "queue")

    assert [record["attributes"] for record in changed["Records"]] == [
        {"DeadLetterQueueSourceArn": ARNS + "source"},
        {},
    ]
    assert queue == "queue"


def redrive_to(name):
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": ARNS + name, "maxReceiveCount": 1})}


@pytest.mark.emulator
def test_a_source_that_is_not_allowed_is_refused_on_creation_and_on_change(running):
    sqs = running.session().client("sqs")
    closed = sqs.create_queue(QueueName="closed", Attributes={"RedriveAllowPolicy": DENY_ALL})["QueueUrl"]
    sqs.create_queue(QueueName="dead", Attributes={"RedriveAllowPolicy": BY_QUEUE})

    for name in ("closed", "dead"):
        with pytest.raises(ClientError, match=r"InvalidParameterValue.*excludes this source queue"):
            sqs.create_queue(QueueName="redrive-eve", Attributes=redrive_to(name))
    eve = sqs.create_queue(QueueName="redrive-eve")["QueueUrl"]
    with pytest.raises(ClientError, match="excludes this source queue"):
        sqs.set_queue_attributes(QueueUrl=eve, Attributes=redrive_to("closed"))

    source = sqs.create_queue(QueueName="source", Attributes=redrive_to("dead"))["QueueUrl"]
    dead = sqs.get_queue_url(QueueName="dead")["QueueUrl"]
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [source]
    assert sqs.list_dead_letter_source_queues(QueueUrl=closed)["queueUrls"] == []


@pytest.mark.emulator
def test_a_moved_message_has_its_source_for_receivers_and_for_functions(running):
    session = running.session()
    sqs = session.client("sqs")
    moved_to, target = (sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("moved-to", "moved-seen"))
    source = sqs.create_queue(QueueName="moved-from", Attributes=redrive_to("moved-to") | {"VisibilityTimeout": "0"})
    make_function(session, "moved", FORWARD_SOURCES, TARGET=target)

    def move() -> None:
        sqs.send_message(QueueUrl=source["QueueUrl"], MessageBody="moved")
        for _ in range(2):
            sqs.receive_message(QueueUrl=source["QueueUrl"])

    move()
    (received,) = sqs.receive_message(QueueUrl=moved_to, AttributeNames=["All"], VisibilityTimeout=0)["Messages"]
    session.client("lambda").create_event_source_mapping(EventSourceArn=ARNS + "moved-to", FunctionName="moved")
    (seen,) = sqs.receive_message(QueueUrl=target, WaitTimeSeconds=20)["Messages"]

    assert received["Attributes"]["DeadLetterQueueSourceArn"] == ARNS + "moved-from"
    assert seen["Body"] == ARNS + "moved-from"
