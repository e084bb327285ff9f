"""`signalbox keep`, against a fake stage whose control plane answers as the real one does."""

import json
from collections.abc import Iterator
from datetime import timedelta

import boto3
import pytest

from signalbox.aws.exchange.exchanges import DynamoQueues
from signalbox.aws.kept.settings import DynamoKeepSettings
from signalbox.errors import RejectedError
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import DeclaredQueue
from signalbox.kept.settings import KeepSetting
from signalbox.sarracenia.rights.names import sqs_name
from tests.cli.exchange.stage import signalbox
from tests.cli.shared.stage import FakeStage, reply_queue_url, serving
from tests.fakes.aws import aws, exchange_table, split_table  # noqa: F401 - fixtures
from tests.fakes.clock import START

ROLE = json.dumps({"Version": "2012-10-17", "Statement": []})


@pytest.fixture
def prefix() -> str:
    """Return the prefix of the SQS names of declared queues; a test may have another one."""
    return ""


@pytest.fixture
def stage(split_table, exchange_table, prefix) -> Iterator[FakeStage]:  # noqa: F811 - fixtures
    url = boto3.client("sqs").create_queue(QueueName="signalbox-split-control")["QueueUrl"]
    outputs = {
        "SplitControlQueueUrl": url,
        "SplitReplyQueueUrl": reply_queue_url(url),
        "SplitTable": "Splits",
        "ExchangeTable": "Exchanges",
        "ExchangePrefix": prefix,
    }
    with serving(outputs, [url]) as found:
        settings = DynamoKeepSettings(split_table)

        def keep(command) -> object:
            setting = settings.find(command["queue"])
            kept = int(setting.keep_for.total_seconds()) if setting and setting.keep_for else None
            return {"queue": command["queue"], "kept_seconds": kept, "target": None, "deleted": 0, "complete": True}

        found.replies["keep"] = keep
        for name in ("memes", "q_ann"):
            boto3.client("sqs").create_queue(QueueName=name)
        DynamoQueues(exchange_table).create(DeclaredQueue(DeclaredName("q_ann"), None, START, START))
        yield found


def test_a_queue_is_kept_for_its_caller_and_listed(stage):
    done = signalbox("keep", "set", "memes", "--for", "24h")

    assert done.exit_code == 0
    assert "memes" in done.stdout
    assert "1d" in done.stdout
    assert "queue 'memes' is not split: its messages pass Signalbox, and are kept, only while it is" in done.stderr
    assert "in stage signalbox" in done.stderr
    listed = signalbox("keep", "list")
    assert ("memes" in listed.stdout, "1d" in listed.stdout) == (True, True)
    assert stage.asked[-1]["queue"] == "memes"


def test_a_fifo_queue_is_kept_by_its_name_in_sqs(stage):
    boto3.client("sqs").create_queue(QueueName="orders.fifo", Attributes={"FifoQueue": "true"})

    assert signalbox("keep", "set", "orders.fifo", "--for", "1h").exit_code == 0

    (listed,) = json.loads(signalbox("keep", "list", "--json").stdout)
    assert (listed["queue"], listed["declared"]) == ("orders.fifo", None)


def test_readers_are_users_and_roles_and_stay_unless_they_are_named_again(stage, split_table):  # noqa: F811
    iam = boto3.client("iam")
    ids = {
        iam.create_user(UserName="ann")["User"]["UserId"]: "user/ann",
        iam.create_role(RoleName="dev", AssumeRolePolicyDocument=ROLE)["Role"]["RoleId"]: "role/dev",
    }

    readers = ("--readable-by", "ann", "--readable-by", "role/dev")
    document = json.loads(signalbox("keep", "set", "memes", "--for", "2h", *readers, "--json").stdout)
    signalbox("keep", "set", "memes", "--for", "3h")

    assert (document["kept_seconds"], document["readable_by"]) == (7200, ["role/dev", "user/ann"])
    found = DynamoKeepSettings(split_table).find("memes")
    assert (found.readers, found.keep_for.total_seconds()) == (ids, 10800)
    (listed,) = json.loads(signalbox("keep", "list", "--json").stdout)
    assert (listed["queue"], listed["readable_by"]) == ("memes", ["role/dev", "user/ann"])


def test_a_declared_queue_is_marked_for_the_router(stage, exchange_table):  # noqa: F811
    done = signalbox("keep", "set", "q_ann", "--for", "24h")

    found = DynamoQueues(exchange_table).find(DeclaredName("q_ann"))
    assert found.settings.keep.total_seconds() == 86400
    assert "is not split" not in done.stderr
    signalbox("keep", "remove", "q_ann", "--yes")
    assert DynamoQueues(exchange_table).find(DeclaredName("q_ann")).settings.keep is None


@pytest.mark.parametrize("prefix", ["", "sb-"])
def test_a_declared_queue_is_set_and_removed_by_its_name_in_sqs_too(stage, exchange_table, prefix):  # noqa: F811
    name, in_sqs = DeclaredName("q_ann.photos"), sqs_name("q_ann.photos", prefix=prefix)
    boto3.client("sqs").create_queue(QueueName=in_sqs)
    queues = DynamoQueues(exchange_table)
    queues.create(DeclaredQueue(name, None, START, START))

    signalbox("keep", "set", name, "--for", "24h")
    assert name in signalbox("keep", "list").stdout
    signalbox("keep", "set", in_sqs, "--for", "1h")
    assert queues.find(name).settings.keep.total_seconds() == 3600
    signalbox("keep", "remove", in_sqs, "--yes")

    assert queues.find(name).settings.keep is None
    (listed,) = json.loads(signalbox("keep", "list", "--json").stdout)
    assert (listed["queue"], listed["declared"], listed["active"]) == (in_sqs, name, False)


def test_the_list_says_that_a_queue_that_was_declared_again_is_not_kept(stage, exchange_table):  # noqa: F811
    signalbox("keep", "set", "q_ann", "--for", "24h")
    queues = DynamoQueues(exchange_table)
    assert "no new ones" not in signalbox("keep", "list").stdout

    assert queues.forget(queues.find(DeclaredName("q_ann")))
    queues.create(DeclaredQueue(DeclaredName("q_ann"), None, START, START))

    done = signalbox("keep", "list")
    assert "1d, no new ones" in done.stdout
    assert "queue 'q_ann' was deleted since: `signalbox keep set q_ann` keeps a new one's messages" in done.stderr


def test_removing_asks_and_deletes_until_nothing_is_left(stage):
    signalbox("keep", "set", "memes", "--for", "24h")
    with pytest.raises(RejectedError, match="Delete all kept messages of queue 'memes'"):
        signalbox("keep", "remove", "memes")
    progress = iter([(1000, False), (1000, False), (7, True)])

    def keep(command) -> object:
        deleted, complete = next(progress)
        return {
            "queue": command["queue"],
            "kept_seconds": None,
            "target": None,
            "deleted": deleted,
            "complete": complete,
        }

    stage.replies["keep"] = keep
    done = signalbox("keep", "remove", "memes", "--yes")

    assert "2007 objects" in done.stdout
    assert "2000 objects deleted so far" in done.stderr
    assert "being deleted" in signalbox("keep", "list").stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("set", "nothing", "--for", "24h"), "there is no queue 'nothing': give a queue that is split or declared$"),
        (("set", "mems", "--for", "24h"), r"'mems': .*; did you mean 'memes'\?"),
        (("set", "q_nobody", "--for", "24h"), "there is no queue 'q_nobody'"),
        (("set", "memes", "--for", "15d"), "5 minutes to 14 days"),
        (("set", "memes", "--for", "never"), "5 minutes to 14 days"),
        (("set", "memes", "--for", "24h", "--readable-by", "who"), "'who' is no IAM user or role"),
        (("remove", "memes", "--yes"), "queue 'memes' is not kept"),
    ],
)
def test_what_cannot_be_kept_is_refused(stage, arguments, reason):
    with pytest.raises(RejectedError, match=reason):
        signalbox("keep", *arguments)


def test_a_queue_of_the_name_that_is_not_declared_is_refused(stage, split_table):  # noqa: F811
    boto3.client("sqs").create_queue(QueueName="q_bob")

    settings, before = DynamoKeepSettings(split_table), KeepSetting("q_bob", timedelta(hours=1), START, {"AIDA": "bob"})

    with pytest.raises(RejectedError, match="queue 'q_bob' is not declared"):
        signalbox("keep", "set", "q_bob", "--for", "24h")
    assert settings.find("q_bob") is None

    settings.put(before)
    with pytest.raises(RejectedError, match="queue 'q_bob' is not declared"):
        signalbox("keep", "set", "q_bob", "--for", "24h")
    assert settings.find("q_bob") == before  # by which its messages are deleted on time


def test_without_kept_queues_the_list_says_so(stage):
    assert signalbox("keep", "list").stdout == "no queue is kept\n"
