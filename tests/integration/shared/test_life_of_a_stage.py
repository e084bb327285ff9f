"""The life of a stage: failed deployments, another stage, a restarted emulator, deletion, redeployment, removal."""

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from signalbox.cli.main import app
from signalbox.clients.control import ControlClient
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor
from signalbox.clients.live.session import Login
from signalbox.clients.splitting.sessions import SessionClient, SessionRequest
from signalbox.clients.web_socket import connector
from signalbox.flows.consumer import DeployedConsumer, LocalConsumer
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.local.cdk import QUALIFIER
from signalbox.local.demo.history import wait_for_files
from signalbox.local.eks import NAME
from signalbox.local.emulator.lifecycle import REGION
from signalbox.local.emulator.program import ACCOUNT
from signalbox.local.spark.history_jobs import run_locally
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import UserName
from tests.integration.shared.stages import (
    Stages,
    broken,
    created_user,
    functions,
    mappings,
    resources,
    run_task,
    synthesized,
)
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.release]

FIRST, SECOND = "signalbox", "second"
# Names that the settings of a second stage in an account must change.
SECOND_SETTINGS = (
    f"stage={SECOND}",
    "broker_queue_name=broker-of-second",
    "client_queue_prefix=clients-of-second-",
    "exchange_prefix=of-second-",
)
ALICE = UserName("alice")
EXCHANGE, QUEUE, TOPIC = "xs_alice_images", "q_alice_images", "trial.life"
ORIGINAL, CONSUMER = QueueName("demo-life"), "demo-life-of-a-stage"
TABLE = "made_by_a_job"
SECONDS = 240.0


@dataclass
class Story:
    """What happened to the first stage, and what was seen; `before` has the resources of an empty account."""

    stages: Stages
    before: set[tuple[str, str]] = field(default_factory=set)
    failed_deploy: str = ""
    left_by_failure: set[tuple[str, str]] = field(default_factory=set)
    failed_update: str = ""
    status_after_failed_update: str = ""
    by_cli: dict[str, object] = field(default_factory=dict)
    again: dict[str, object] = field(default_factory=dict)
    outputs: list[dict[str, str]] = field(default_factory=list)
    functions: list[set[str]] = field(default_factory=list)
    mappings: list[dict[tuple[str, str], str]] = field(default_factory=list)
    connected: list[dict[str, Any]] = field(default_factory=list)
    received: list[str] = field(default_factory=list)
    user: dict[str, Any] = field(default_factory=dict)
    log: list[Any] = field(default_factory=list)
    in_session: list[str] = field(default_factory=list)
    by_consumer: list[str] = field(default_factory=list)
    session_phase: str = ""
    tables: list[str] = field(default_factory=list)
    reports: list[dict[str, int]] = field(default_factory=list)
    of_second: list[str] = field(default_factory=list)
    destroyed: dict[str, Any] = field(default_factory=dict)
    after: set[tuple[str, str]] = field(default_factory=set)
    of_second_at_the_end: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Run the story once: its four deployments are enough for all tests here."""
    path = tmp_path_factory.mktemp("life")
    with Stages.started(path / ".signalbox") as stages, ExitStack() as stack:
        story = Story(stages)
        story.before = resources(stages.session)
        # With the retention and the deletion protection of a stage in AWS.
        first = synthesized(path / FIRST, "retain_state=true")
        failing = broken(first, path / "broken", stack=FIRST)
        # Another synthesis and the history's jobs take a while, and need nothing of what happens meanwhile.
        background = stack.enter_context(ThreadPoolExecutor(1))
        synthesis = background.submit(synthesized, path / SECOND, *SECOND_SETTINGS)
        story.failed_deploy = stages.try_to_deploy(failing)
        story.left_by_failure = {one for one in resources(stages.session) if one[0] in ("schedule group", "function")}
        deployment = stages.deploy(first)
        story.failed_update = stages.try_to_deploy(failing)
        story.status_after_failed_update = stages.status(FIRST)
        with created_user(deployment, ALICE) as alice:
            _use(story, deployment, alice)
            report = background.submit(_report, deployment, path / "first.json")
            second = _deploy_second(story, synthesis.result(), like=deployment)
            alice_of_second = stack.enter_context(created_user(second, ALICE))
            _declare(alice_of_second)
            request = _start_session(deployment)
            _remember(story, deployment)
            story.reports.append(report.result())
            stages.restart()
            stages.delete(deployment, FIRST)
            deployment = stages.deploy(first)
            story.connected = [run_task(deployment, "ExchangeControlFunctionName", "maintain") for _ in range(2)]
            alice.publish(EXCHANGE, "images.3", "after")
            report = background.submit(_report, deployment, path / "second.json")
            _use_again(story, deployment, alice, request)
            story.reports.append(report.result())
        _remember(story, deployment)
        story.of_second = _delivered(alice_of_second, "to the second")
        _destroy(story, path)
        story.of_second_at_the_end = _delivered(alice_of_second, "still to the second")
        yield story


def _deploy_second(story: Story, assembly: Path, *, like: Deployment) -> Deployment:
    second = story.stages.deploy_more(assembly, SECOND, like=like)
    story.by_cli = story.stages.deployed(assembly)
    story.stages.deploy_again(assembly)
    story.again = story.stages.deployed(assembly)
    return second


def _use(story: Story, deployment: Deployment, alice: ExchangeClient) -> None:
    """Use every capability that keeps something."""
    _declare(alice)
    for number in range(3):
        alice.publish(EXCHANGE, f"images.{number}", f"before {number}")
    wait_for(lambda: _queued(alice) == 3, "the messages wait in the queue", seconds=SECONDS)
    with _live(deployment) as client:
        client.publish(TOPIC, Payload(["before"]))
    prefix = deployment.outputs["TemporaryQueuePrefix"]
    consumer = DeployedConsumer.deploy(deployment.session(), CONSUMER, [ORIGINAL], temporary_prefix=prefix)
    _split_control(deployment).ask("apply", {"documents": [consumer.registry()]})
    # What a job of the history leaves in the catalog.
    glue = deployment.session().client("glue")
    glue.create_table(DatabaseName=deployment.outputs["HistoryDatabase"], TableInput={"Name": TABLE})


def _report(deployment: Deployment, answer: Path) -> dict[str, int]:
    """Compact the history and report on its topics; return the publications by topic."""
    wait_for_files(deployment.session().client("s3"), deployment.outputs["HistoryBucket"])
    now = datetime.now(UTC)
    window = {"from": f"{(now - timedelta(hours=1)).date()}", "to": f"{(now + timedelta(days=1)).date()}"}
    publications = f"SELECT topic, sum(publications) FROM topic_hourly WHERE exchange = '{EXCHANGE}' GROUP BY topic"  # noqa: S608 - ours
    query = {"query": publications, "output": str(answer)}
    run_locally(deployment, [("compact_history", window), ("topic_report", window), ("query", query)], print)
    return {topic: int(count) for topic, count in json.loads(answer.read_text())["rows"]}


def _declare(alice: ExchangeClient) -> None:
    alice.declare_exchange(EXCHANGE)
    alice.declare_queue(QUEUE)
    alice.bind(EXCHANGE, QUEUE, "images.#")


def _queued(alice: ExchangeClient) -> int:
    (queue,) = alice.status(QUEUE)["queues"]
    return int(queue["queued"])


def _start_session(deployment: Deployment) -> SessionRequest:
    """Start a session of a split, which the removal of the stage ends."""
    request = SessionRequest(
        f"lambda/{CONSUMER}",
        "alice-session",
        "alice@laptop",
        {"feature": {"split_queues": {"*": {"queue_type": "SQS", "message_filter": {"author": "^alice$"}}}}},
    )
    SessionClient(_split_control(deployment), request).start(timeout=timedelta(seconds=120))
    return request


def _split_control(deployment: Deployment) -> ControlClient:
    outputs, sqs = deployment.outputs, deployment.session().client("sqs")
    return ControlClient(sqs, outputs["SplitControlQueueUrl"], outputs["SplitReplyQueueUrl"])


def _live(deployment: Deployment) -> LiveClient:
    login = Login(deployment.realm, "live-source", deployment.tickets["live-source"])
    return LiveClient(connector(deployment.websocket_url), login)


def _remember(story: Story, deployment: Deployment) -> None:
    story.outputs.append(dict(deployment.outputs))
    story.functions.append(functions(story.stages.session))
    story.mappings.append(mappings(story.stages.session))


def _use_again(story: Story, deployment: Deployment, alice: ExchangeClient, request: SessionRequest) -> None:
    """Use the recorded resources, without a declaration."""
    story.user = dict(alice.whoami())
    with alice.consumer(QUEUE) as consumer:

        def bodies() -> bool:
            found = consumer.receive(wait_seconds=1)
            story.received.extend(one.delivered.body for one in found)
            consumer.ack(*found)
            return len(story.received) == 4

        wait_for(bodies, "all messages are received", seconds=SECONDS)
    with _live(deployment) as client:
        client.follow(PatternCursor(TopicPattern.parse(TOPIC), backfill_start=LastEvents(10)))
        client.publish(TOPIC, Payload(["after"]), options={"exclude_me": False})
        for _ in range(2):
            event = client.receive(SECONDS)
            assert event is not None
            story.log.append((event.sequence, event.payload.arguments))
    _use_split(story, deployment, request)
    glue = deployment.session().client("glue")
    listed = glue.get_tables(DatabaseName=deployment.outputs["HistoryDatabase"])["TableList"]
    story.tables = sorted(one["Name"] for one in listed)


def _use_split(story: Story, deployment: Deployment, request: SessionRequest) -> None:
    session = deployment.session()
    original = session.client("sqs").get_queue_url(QueueName=ORIGINAL)["QueueUrl"]
    consumer = DeployedConsumer(session, CONSUMER, {ORIGINAL: original})
    state = SessionClient(_split_control(deployment), request).heartbeat()
    story.session_phase = state.phase
    run_task(deployment, "ControlFunctionName", "reconcile")
    for author in ("alice", "bob"):
        session.client("sqs").send_message(
            QueueUrl=original,
            MessageBody=f"for {author}",
            MessageAttributes={"author": {"DataType": "String", "StringValue": author}},
        )
    reader = LocalConsumer(session, [queue.url for queue in state.queues])
    with reader.reading():
        wait_for(lambda: reader.received and consumer.received(), "the split forwards messages", seconds=SECONDS)
    story.in_session = [one.body for one in reader.received]
    story.by_consumer = [one.body for one in consumer.received()]


def _delivered(alice: ExchangeClient, body: str) -> list[str]:
    alice.publish(EXCHANGE, "images.1", body)
    with alice.consumer(QUEUE) as consumer:
        found = wait_for(lambda: consumer.receive(wait_seconds=1), "the message is received", seconds=SECONDS)
        consumer.ack(*found)
    return [one.delivered.body for one in found]


def _destroy(story: Story, path: Path) -> None:
    with pytest.MonkeyPatch.context() as environment:
        environment.chdir(path)
        # People attach this policy; the stack could not be deleted then.
        policy = story.outputs[-1]["SplitUserPolicyArn"]
        story.stages.session.client("iam").create_role(RoleName="developers", AssumeRolePolicyDocument="{}")
        story.stages.session.client("iam").attach_role_policy(RoleName="developers", PolicyArn=policy)
        run = CliRunner().invoke(
            app,
            ["destroy", FIRST, "--everything", "--yes", "--confirm", FIRST, "--json"],
            catch_exceptions=False,
        )
    story.destroyed = {**json.loads(run.stdout), "status": run.exit_code}
    story.after = resources(story.stages.session)


def _of_stack(names: Iterable[str]) -> set[str]:
    """Return the names that begin with the first stack's, without those of its state stack."""
    return {name for name in names if name.startswith(FIRST) and not name.startswith(f"{FIRST}-state-")}


def test_a_failed_first_deployment_names_its_cause_and_leaves_no_name_taken(story: Story):
    assert "a-name-that-is-taken already exists" in story.failed_deploy
    assert not _of_stack(name for _, name in story.left_by_failure)


def test_a_failed_update_names_its_cause_and_is_rolled_back(story: Story):
    assert "a-name-that-is-taken already exists" in story.failed_update
    assert story.status_after_failed_update == "UPDATE_ROLLBACK_COMPLETE"


def test_a_stage_that_the_cdk_cli_deployed_is_as_the_local_deployment_wants_it(story: Story):
    """The same template, parameters, tags and keys of assets: nothing is updated and nothing is uploaded."""
    assert SECOND in story.by_cli
    assert story.again == story.by_cli


def test_after_the_cause_is_removed_the_stage_is_deployed(story: Story):
    assert "ExchangeControlQueueUrl" in story.outputs[0]


def test_a_redeployed_stack_has_other_functions_and_the_urls_of_rendezvous_keep_theirs(story: Story):
    first, second = map(_of_stack, story.functions)

    assert len(first) == len(second)
    assert not first & second
    kept = [{name for name in found if name.startswith(f"{FIRST}-state-")} for found in story.functions]
    assert kept[0] == kept[1] != set()


def test_every_queue_is_read_by_a_function_that_exists(story: Story):
    for functions_then, mappings_then in zip(story.functions, story.mappings, strict=True):
        assert {function for _, function in mappings_then} <= functions_then
    before, after = ({queue for queue, _ in found if FIRST not in queue} for found in story.mappings)
    assert before == after
    assert {EXCHANGE, "xtrial.fifo", ORIGINAL} <= after


def test_the_first_check_after_the_deployment_connects_everything_and_the_next_one_nothing(story: Story):
    first, second = story.connected

    assert first["complete"]
    assert second == {"deleted": 0, "connected": 0, "disconnected": 0, "complete": True}


def test_users_keep_their_keys_and_rights(story: Story):
    assert story.user["user"] == ALICE


def test_no_message_in_a_queue_is_lost_and_bindings_work(story: Story):
    assert sorted(story.received) == ["after", "before 0", "before 1", "before 2"]


def test_realms_keep_their_logs_and_go_on_counting(story: Story):
    assert story.log == [(1, ("before",)), (2, ("after",))]


def test_a_split_goes_on_for_its_sessions_and_its_consumer(story: Story):
    assert story.session_phase == "ready"
    assert (story.in_session, story.by_consumer) == (["for alice"], ["for bob"])


def test_the_tables_of_the_history_stay_in_the_catalog(story: Story):
    assert TABLE in story.tables


def test_the_jobs_of_the_history_go_on_with_their_tables(story: Story):
    before = {f"images.{number}": 1 for number in range(3)}

    assert story.reports == [before, {**before, "images.3": 1}]


def test_a_second_stage_in_the_account_notices_nothing(story: Story):
    assert story.of_second == ["to the second"]
    of_second = [
        {pair: uuid for pair, uuid in found.items() if pair[1].startswith(f"{SECOND}-")} for found in story.mappings
    ]
    assert of_second[0] == of_second[1]


def test_destroy_leaves_nothing_of_the_stage(story: Story):
    assert (story.destroyed["status"], story.destroyed["failed"], story.destroyed["stays"]) == (0, [], [])
    mine = {
        (kind, name)
        for kind, name in story.after - story.before
        if SECOND not in name and CONSUMER not in name and name not in (ORIGINAL, "developers", f"eks-{NAME}")
    }
    of_cdk = {
        ("bucket", f"cdk-{QUALIFIER}-assets-{ACCOUNT}-{REGION}"),
        ("parameter", f"/cdk-bootstrap/{QUALIFIER}/version"),
    }
    assert mine == of_cdk  # for all stages


def test_destroy_ended_the_split_and_put_its_consumer_back(story: Story):
    kinds = {one["kind"] for one in story.destroyed["removed"]}

    assert {"session of a split", "attachment of a policy", "queue", "IAM user", "table", "KMS key"} <= kinds
    assert str((str(ORIGINAL), CONSUMER)) in {name for kind, name in story.after if kind == "mapping"}


def test_destroy_leaves_the_second_stage_alone(story: Story):
    assert story.of_second_at_the_end == ["still to the second"]
    assert ("user", f"{SECOND}_{ALICE}") in story.after
