"""Many live-only users on the deployed stage, and a storm of wrong secrets: the short forms of what is benchmarked."""

import json
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.clients.deployment import Deployment
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor
from signalbox.clients.live.session import ConnectionLost, JoinRefused, Login, join
from signalbox.clients.web_socket import connector
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.local.stage_folder import StageFolder
from signalbox.sarracenia.rights.names import UserName
from tests.integration.live.page import WorkingFolder
from tests.integration.live.stage import TrialRealm, new_topic
from tests.patience import SOON_SECONDS, wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

USERS, CONNECTIONS = 150, 6
FORMER_LIMIT, STORM_SECONDS = 20, 60.0  # wrong secrets after which a user could not join for a minute


def test_a_file_of_users_joins_without_identities(
    place: TrialRealm, deployment: Deployment, stage_folder: StageFolder, tmp_path: Path
):
    desk, lab = WorkingFolder.at(tmp_path, stage_folder), f"lab-{secrets.token_hex(4)}"
    names = [f"{lab}-{number}" for number in range(USERS)]
    (tmp_path / "lab.csv").write_text("user,role\n" + "".join(f"{name},feeder\n" for name in names))

    desk.run("user", "add", "--live", "--from", "lab.csv")
    created = json.loads(desk.run("user", "secret", "--from", "lab.csv", "--json"))
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        joined = list(threads.map(lambda one: _joined(place, one["user"], one["secret"]), created[:CONNECTIONS]))

    assert [one["user"] for one in created] == names
    assert joined == names[:CONNECTIONS]
    listed = {one["user"] for one in json.loads(desk.run("user", "list", "--json")) if one["live_only"]}
    assert set(names) <= listed
    session = deployment.session()
    assert [one for one in session.client("iam").list_users()["Users"] if lab in one["UserName"]] == []
    control_queue = deployment.outputs["ExchangeControlQueueUrl"].rpartition("/")[2]
    queues = session.client("sqs").list_queues(QueueNamePrefix=f"{control_queue}-{lab}")
    assert queues.get("QueueUrls", []) == []

    desk.run("user", "remove", names[0], "--yes")
    with pytest.raises(JoinRefused, match="wrong name or ticket"):
        _joined(place, names[0], created[0]["secret"])
    records = DynamoUsers(session.resource("dynamodb").Table(deployment.outputs["ExchangeTable"]))
    assert records.find(UserName(names[0])) is None


def test_a_storm_of_wrong_secrets_locks_nobody_out(place: TrialRealm):
    over, topic, answers = threading.Event(), new_topic(), list[str]()
    name, _ = place.users["subscriber"]
    wrong = [(name, "wrong"), (name, "e30.e30.e30"), ("nobody", "wrong"), ("not a name", "")]

    with ThreadPoolExecutor(len(wrong)) as threads:
        storms = [threads.submit(_storm, place, one, over, answers) for one in wrong]
        try:
            wait_for(lambda: answers.count(name) > FORMER_LIMIT, "a storm", seconds=STORM_SECONDS)
            values = wait_for(lambda: _received(place, topic), "an event in the storm", seconds=STORM_SECONDS)
        finally:
            over.set()
        assert [text for storm in storms for text in storm.result()] == []

    assert values == ("through",)
    assert set(answers) >= {name, "nobody"}


def _received(place: TrialRealm, topic: str) -> tuple[object, ...] | None:
    """Join, subscribe, publish and return the arguments of the event; None if the machine is too slow to join."""
    with suppress(ConnectionLost), place.client("subscriber") as client, place.publisher() as publisher:
        client.follow(PatternCursor(TopicPattern.parse(topic)))
        assert list(client.backfill()) == []
        publisher.publish(topic, Payload(("through",)))
        event = client.receive(SOON_SECONDS)
        return None if event is None else event.payload.arguments
    return None


def _joined(place: TrialRealm, name: str, ticket: str) -> str:
    with LiveClient(connector(place.url), Login(place.realm, name, ticket)) as client:
        client.call("wamp.subscription.lookup", Payload(("trial.a",)))
    return name


def _storm(place: TrialRealm, login: tuple[str, str], over: threading.Event, answers: list[str]) -> list[str]:
    """Join with a wrong secret again and again; note the name at each refusal, and return the other answers."""
    connect, others = connector(place.url), list[str]()
    while not over.is_set():
        with suppress(ConnectionLost):  # API Gateway's limit for new connections, or a join that took too long
            socket = connect()
            try:
                join(socket, Login(place.realm, *login))
            except JoinRefused as refused:
                answers.append(login[0])
                others += [] if "wamp.error.authentication_failed" in str(refused) else [str(refused)]
            finally:
                socket.close()
    return others
