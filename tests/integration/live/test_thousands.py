"""Many live-only users on the deployed stage, and a storm of wrong secrets: the short forms of what is benchmarked."""

import json
import secrets
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.cli.shared.deployment import Deployment
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import Cursor
from signalbox.clients.live.session import ConnectionLost, JoinRefused, Login, join
from signalbox.clients.web_socket import connector
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.local.stage_folder import StageFolder
from signalbox.sarracenia.rights.names import UserName
from tests.integration.live.page import WorkingFolder
from tests.integration.live.stage import TrialRealm, new_topic
from tests.patience import SOON_SECONDS, fewer, scaled

pytestmark = pytest.mark.emulator

USERS, CONNECTIONS = 150, 6
STORMS, LEAST_WRONG = 4, 20


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
    assert "QueueUrls" not in session.client("sqs").list_queues(
        QueueNamePrefix=f"{deployment.outputs['ExchangeControlQueueUrl'].rpartition('/')[2]}-{lab}"
    )

    desk.run("user", "remove", names[0], "--yes")
    with pytest.raises(JoinRefused, match="wrong authid or secret"):
        _joined(place, names[0], created[0]["secret"])
    records = DynamoUsers(session.resource("dynamodb").Table(deployment.outputs["ExchangeTable"]))
    assert records.find(UserName(names[0])) is None


def test_a_storm_of_wrong_secrets_locks_nobody_out(place: TrialRealm):
    over, topic = threading.Event(), new_topic()
    name, _ = place.users["subscriber"]
    wrong = [(name, "wrong"), (name, "e30.e30.e30"), ("nobody", "wrong"), ("not a name", "")]
    answers: Counter[str] = Counter()

    with ThreadPoolExecutor(STORMS) as threads:
        storms = [threads.submit(_storm, place, one, over) for one in wrong[: fewer(STORMS)]]
        try:
            for _ in range(2):
                with place.client("subscriber") as client, place.publisher() as publisher:
                    client.follow(Cursor(TopicPattern.parse(topic)))
                    assert list(client.backfill()) == []
                    publisher.publish(topic, Payload(("through",)))
                    event = client.receive(scaled(SOON_SECONDS))
                    assert event is not None
                    assert event.payload.arguments == ("through",)
            over.wait(1)
        finally:
            over.set()
        for storm in storms:
            answers += storm.result()

    assert sum(answers.values()) >= LEAST_WRONG
    assert {text for text in answers if "wamp.error.authentication_failed" not in text} == set()


def _joined(place: TrialRealm, name: str, ticket: str) -> str:
    with LiveClient(connector(place.url), Login(place.realm, name, ticket)) as client:
        client.call("wamp.subscription.lookup", Payload(("trial.a",)))
    return name


def _storm(place: TrialRealm, login: Sequence[str], over: threading.Event) -> Counter[str]:
    """Join with a wrong secret again and again; return the answers."""
    answers: Counter[str] = Counter()
    connect = connector(place.url)
    while not over.is_set() or answers.total() < LEAST_WRONG // STORMS:
        with suppress(ConnectionLost):  # API Gateway's limit for new connections, or a join that took too long
            socket = connect()
            try:
                join(socket, Login(place.realm, *login))
            except JoinRefused as refused:
                answers[str(refused)] += 1
            finally:
                socket.close()
    return answers
