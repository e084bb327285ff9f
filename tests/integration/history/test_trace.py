"""`signalbox trace` on the deployed stage: one message through an exchange, a queue, a split, and to a connection."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.clients.live.cursor import PatternCursor
from signalbox.flows.consumer import LocalConsumer
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.local.stage_folder import StageFolder
from tests.integration.live.page import WorkingFolder
from tests.integration.live.stage import TrialRealm, new_topic
from tests.integration.shared.stages import run_task
from tests.integration.splitting.sessions import Users
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

QUEUE, PARAMETER = "q_demo_traced", "demo-traced-queue"
TARGET = f"ssm/{PARAMETER}"
SECONDS = 240
REGISTRY = {
    "apiVersion": "queues.mirrord.metalbear.co/v1",
    "kind": "MirrordSplitConfig",
    "metadata": {"name": "traced"},
    "spec": {
        "targetRef": {"kind": "SsmParameter", "name": PARAMETER},
        "queues": [
            {
                "id": "traced",
                "kind": "sqs",
                "appConfig": {"queue": [{"env": "TRACED_QUEUES", "valueSelector": ".traced"}]},
            }
        ],
    },
}
WAY = [
    ("exchange", "logged", "live"),
    ("exchange", "routed", "delivered"),
    ("live", "delivered", "posted"),
    ("splitting", "routed", "session"),
]


@pytest.fixture
def users(deployment: Deployment, place: TrialRealm) -> Iterator[Users]:
    """The users of a queue of the realm's exchange, whose deployed consumer reads an SSM parameter."""
    deployment.session().client("ssm").put_parameter(
        Name=PARAMETER, Value=json.dumps({"traced": QUEUE}), Type="String", Overwrite=True
    )
    users = Users(deployment, TARGET)
    exchanges = client_of(deployment)
    exchanges.declare_queue(QUEUE)
    exchanges.bind(place.realm, QUEUE, "trial.#")
    users.apply(REGISTRY)
    yield users
    users.wait_until_over()
    exchanges.delete_queue(QUEUE)


def test_one_message_is_traced_through_an_exchange_its_queue_a_split_and_to_a_connection(
    users: Users, place: TrialRealm, deployment: Deployment, stage_folder: StageFolder, tmp_path: Path
) -> None:
    folder, topic = WorkingFolder.at(tmp_path, stage_folder), new_topic()

    def traced(id_: str) -> Any:
        """Return the document of the message once it has all events; the command fails while there are none."""
        with suppress(AssertionError):
            (found,) = json.loads(folder.run("trace", id_, "--json"))["messages"]
            return found if kinds(found) == WAY else None
        return None

    with users.session("ann", {"*": {"message_filter": {"topic": "^trial[.]"}}}) as ann:
        reader = LocalConsumer(deployment.session(), [queue.url for queue in ann.queues])
        with reader.reading(), place.client("source") as client:
            client.follow(PatternCursor(TopicPattern.parse(topic)))
            publication = client.publish(topic, options={"exclude_me": False})
            assert client.receive(SECONDS) is not None
            wait_for(lambda: reader.received, "the copy in the session's queue", seconds=SECONDS)
        message = wait_for(lambda: traced(str(publication)), "all events of the message", seconds=SECONDS, every=2)
        by_copy = folder.run("trace", copies(message)[-1], "--json")
        shown = folder.run("trace", message["message_id"])

    (session_queue,) = [queue.temporary for queue in ann.queues]
    routed = next(step for step in message["steps"] if step.get("kind") == "logged")
    assert routed["labels"]["publication"] == str(publication)
    assert json.loads(by_copy)["messages"] == [message]
    assert [one["place"] for one in message["places"] if one["place"].endswith(session_queue)] == [session_queue]
    assert any(one["state"] == "posted" for one in message["places"])
    assert f"message {message['message_id']}\ntopic {topic}" in shown
    assert "session ann of ann@laptop" in shown
    assert f"match     {QUEUE}  trial.#" in shown


def kinds(message: Any) -> list[tuple[str, str, str]]:
    return sorted((one["capability"], one["kind"], one["outcome"]) for one in message["steps"] if "kind" in one)


def copies(message: Any) -> list[str]:
    return [one["labels"]["copy"] for one in message["steps"] if "copy" in one["labels"]]


@pytest.mark.release
def test_a_message_that_died_in_its_queue_and_was_replayed_is_traced_to_its_last_place(
    deployment: Deployment, stage_folder: StageFolder, tmp_path: Path
) -> None:
    folder, exchanges = WorkingFolder.at(tmp_path, stage_folder), client_of(deployment)
    exchange, queue, again = "xtraced", "q_traced", "q_traced_again"
    exchanges.declare_exchange(exchange)
    exchanges.declare_queue(queue, maximum_receives=1)
    exchanges.declare_queue(again)
    exchanges.bind(exchange, queue, "#")
    (sent,) = exchanges.publish_all(exchange, [PublishRequest("a", "poison")])
    url = exchanges.url_prefix + exchanges.names.queue(queue)
    wait_for(
        lambda: exchanges.sqs.receive_message(QueueUrl=url, VisibilityTimeout=0).get("Messages"),
        "the copy is received",
        seconds=SECONDS,
    )
    exchanges.sqs.receive_message(QueueUrl=url)  # SQS moves it at the receive after the last permitted one

    def place() -> str:
        """Return the last place of the message; the command fails while there is no event."""
        run_task(deployment, "ExchangeControlFunctionName", "measure")
        with suppress(AssertionError):
            (found,) = json.loads(folder.run("trace", str(sent.message_id), "--json", "--no-filters"))["messages"]
            return ", ".join(one["place"] for one in found["places"])
        return ""

    (status,) = exchanges.status(queue)["queues"]
    assert status["dead_letters"] == 1
    wait_for(lambda: place() == f"dead letters of {queue}", "the trace ends at the dead letter", seconds=SECONDS)
    folder.run("replay", "--dead-letters", queue, "--into", again, "--yes", "--json")
    wait_for(lambda: place() == again, "the trace ends where it was replayed to", seconds=SECONDS)
    exchanges.delete_exchange(exchange, force=True)
    for name in (queue, again):
        exchanges.delete_queue(name)
