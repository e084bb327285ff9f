"""An unmodified sr3 posts to the stage and subscribes from it, with the driver from our package."""

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from signalbox.clients.deployment import Deployment
from signalbox.exchange.model.names import StageNames, dead_letter_name
from signalbox.local.stage_folder import StageFolder
from signalbox.queues import QueueName
from signalbox.sarracenia.broker_url import BrokerAccount
from signalbox_sr3.stage import client_of
from tests.integration.live.page import WorkingFolder
from tests.integration.sarracenia.sr3 import Sr3, environment, new_user
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

ROUTED = ["bulletins/20231114/CA/SACN31_CWAO", "bulletins/top", "radar/xam/latest/image.gif"]
NOT_ROUTED = ["radar/xam/former/image.gif", "forecasts/today"]
REJECTED = "bulletins/20231114/half.tmp"
# Includes the start of a function's first instance by the emulator.
ARRIVAL_SECONDS = 240


@pytest.fixture(scope="module")
def alice(
    deployment: Deployment, stage_folder: StageFolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerAccount]:
    """A user who may post and subscribe, with an access key as the only credential."""
    environment()
    with new_user(WorkingFolder.at(tmp_path_factory.mktemp("desk"), stage_folder), deployment, "alice") as broker:
        yield broker


@pytest.fixture
def configured(alice: BrokerAccount, tmp_path: Path) -> Iterator[Callable[..., Sr3]]:
    """Creates an sr3 of alice by the examples with changes, declared with an exchange of its own."""
    made = []

    def make(**changes: str) -> Sr3:
        sr3 = Sr3.configured(tmp_path, alice, exchange=f"xs_{alice.user}_{secrets.token_hex(4)}", **changes)
        sr3.run("sr3", "--dangerWillRobinson=2", "declare", "post/weather", "subscribe/weather")
        made.append(sr3)
        return sr3

    yield make
    for sr3 in made:
        sr3.run("sr3", "cleanup", "subscribe/weather")


@pytest.fixture
def queue_of(deployment: Deployment) -> Callable[[Sr3], QueueName]:
    """Returns the SQS name of an sr3's queue."""
    prefix = deployment.outputs["ExchangePrefix"]
    return lambda sr3: StageNames(sr3.broker.stage, prefix).queue(sr3.queue())


def has_queue(deployment: Deployment, name: QueueName) -> bool:
    sqs = deployment.session().client("sqs")
    return any(url.endswith(f"/{name}") for url in sqs.list_queues(QueueNamePrefix=name).get("QueueUrls", ()))


def messages_in(deployment: Deployment, name: QueueName) -> int:
    """Return the number of messages in a queue, in flight or not."""
    sqs = deployment.session().client("sqs")
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    counts = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    return sum(map(int, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=counts)["Attributes"].values()))


def test_files_are_routed_by_topic_filtered_by_url_and_downloaded(configured, queue_of, deployment):
    sr3 = configured()
    queue = queue_of(sr3)
    sr3.post(*ROUTED, *NOT_ROUTED, REJECTED)

    with sr3.in_foreground() as said:
        wait_for(lambda: sr3.downloaded().keys() >= set(ROUTED), "all files", seconds=ARRIVAL_SECONDS)
        wait_for(lambda: messages_in(deployment, queue) == 0, "an empty queue", seconds=ARRIVAL_SECONDS)

    assert sr3.downloaded() == {name: name for name in ROUTED}
    assert f"accepted: {len(ROUTED)}, rejected: 1" in said.read_text()


@pytest.mark.release
def test_two_instances_share_the_messages_of_a_queue(configured, queue_of, deployment):
    sr3, posted = configured(), list[str]()
    queue = queue_of(sr3)

    def both_have_some() -> bool:
        names = [f"bulletins/{len(posted) + number:04}" for number in range(20)]
        sr3.post(*names)
        posted.extend(names)
        return [("downloaded ok" in log) for log in sr3.instance_logs()] == [True, True]

    with sr3.in_background():
        wait_for(both_have_some, "both instances at work", seconds=ARRIVAL_SECONDS)
        wait_for(lambda: sr3.downloaded().keys() >= set(posted), "all files", seconds=ARRIVAL_SECONDS)
        wait_for(lambda: messages_in(deployment, queue) == 0, "an empty queue", seconds=ARRIVAL_SECONDS)

    done = [line for log in sr3.instance_logs() for line in log.splitlines() if "downloaded ok" in line]
    times = Counter(line.split("downloaded ok: ")[1].split()[0] for line in done)
    assert len(times) == len(posted)
    assert set(times.values()) == {1}


@pytest.mark.release
def test_the_backlog_of_a_queue_is_in_sr3s_metrics(configured, queue_of, deployment):
    sr3 = configured(**{"instances 2": "instances 1\nbatch 1\nprefetch 1"})
    names = [f"bulletins/{number:04}" for number in range(20)]
    sr3.post(*names)
    wait_for(lambda: messages_in(deployment, queue_of(sr3)) == len(names), "all routed", seconds=ARRIVAL_SECONDS)

    with sr3.in_background():
        # Counted when the instance starts, and then every half minute; files that it takes at once are not counted.
        backlog = wait_for(sr3.backlog, "a backlog", seconds=ARRIVAL_SECONDS)
        _state, processes, *_ = sr3.status()["subscribe/weather"]

    assert 0 < backlog <= len(names)
    assert processes == "1/1"


@pytest.mark.release
def test_messages_in_v02_keep_their_headers(configured):
    sr3 = configured(
        post_exchange="post_topicPrefix v02.post\npost_format v02\npost_exchange",
        subtopic="topicPrefix v02.post\nsubtopic",
    )
    sr3.post(*ROUTED, *NOT_ROUTED)

    with sr3.in_foreground() as said:
        wait_for(lambda: sr3.downloaded().keys() >= set(ROUTED), "all files", seconds=ARRIVAL_SECONDS)

    assert sr3.downloaded() == {name: name for name in ROUTED}
    # In this format, the size is a header.
    assert f"size: {len(ROUTED[0])}Bytes" in said.read_text()


def test_an_unreadable_message_becomes_a_dead_letter_and_does_not_block_others(configured, queue_of, deployment):
    sr3 = configured()
    dead_letters = dead_letter_name(queue_of(sr3))
    client = client_of(sr3.broker)
    client.publish(sr3.exchange, "v03.bulletins", '{"no": "announcement"}')
    sr3.post(*ROUTED)

    with sr3.in_foreground():
        wait_for(lambda: sr3.downloaded().keys() >= set(ROUTED), "all files", seconds=ARRIVAL_SECONDS)
        wait_for(lambda: messages_in(deployment, dead_letters) == 1, "a dead letter", seconds=ARRIVAL_SECONDS)


@pytest.mark.release
def test_cleanup_deletes_the_queue_and_its_dead_letter_queue(configured, queue_of, deployment):
    sr3 = configured()
    name = queue_of(sr3)
    assert has_queue(deployment, name)

    sr3.run("sr3", "cleanup", "subscribe/weather")

    for one in (name, dead_letter_name(name)):
        wait_for(lambda one=one: not has_queue(deployment, one), f"queue {one} gone", seconds=ARRIVAL_SECONDS)


@pytest.mark.release
def test_a_refused_declaration_is_logged(alice, tmp_path):
    sr3 = Sr3.configured(tmp_path, alice, exchange="xs_another-user")

    said = sr3.run("sr3", "declare", "post/weather")

    assert "may not configure exchange 'xs_another-user'" in said


def test_a_wrong_key_is_logged_without_the_key(alice, tmp_path):
    sr3 = Sr3.configured(tmp_path, replace(alice, secret_access_key="not-the-secret"), exchange=f"xs_{alice.user}")

    said = sr3.run("sr3", "declare", "post/weather")

    assert f"setting up {alice.url} failed" in said
    assert "not-the-secret" not in said
