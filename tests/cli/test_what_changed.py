"""Every command that changes something names what it changed, and where; every command that destroys asks first."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from signalbox.cli.main import app
from signalbox.cli.shared import settling
from signalbox.errors import RejectedError
from signalbox.local.files import CHECKOUT
from tests.adapters.shared.stubs import ARNS, KEY, URLS, function
from tests.cli.exchange.stage import CONTROL, exchange_replies
from tests.cli.shared.commands import leaves
from tests.cli.shared.stage import FakeStage, reply_queue_url, serving
from tests.fakes.aws import make_exchange_table, make_split_table

PLACE = "stage signalbox in account 123456789012, us-east-1"
REALM = "xs_alice.fifo"
TARGET = ("--target", "lambda/app")
CONFIG = {"feature": {"split_queues": {"memes": {"queue_type": "SQS", "message_filter": {"tenant": "^ann$"}}}}}
REGISTRY = """
apiVersion: queues.mirrord.metalbear.co/v1alpha
kind: MirrordWorkloadQueueRegistry
metadata: {name: app}
spec:
  consumer: {name: app, workloadType: Lambda}
  queues: {memes: {queueType: SQS, nameSource: {envVar: MEMES}}}
"""


class Change(NamedTuple):
    """A command line that changes something, and the text that names the change."""

    words: tuple[str, ...]
    named: str
    input: str = ""


CHANGES: Mapping[str, Change] = {
    "bind": Change(("xpublic", "q_alice", "a.#"), "xpublic → q_alice  a.#"),
    "unbind": Change(("xpublic", "q_alice", "a.#"), "xpublic → q_alice  a.#  unbound"),
    "publish": Change(("xpublic", "a.b", "hello"), "-"),
    "consume": Change(("q_alice", "--no-follow"), "messages of q_alice"),
    "exchange declare": Change(("xs_alice",), "xs_alice"),
    "exchange delete": Change(("xpublic",), "xpublic  deleted"),
    "queue declare": Change(("q_alice",), "q_alice"),
    "queue delete": Change(("q_alice", "--yes"), "q_alice  deleted"),
    "user add": Change(("carol", "--role", "source"), "carol"),
    "user rotate": Change(("alice",), "alice"),
    "user remove": Change(("alice", "--yes"), "alice  removed"),
    "user secret": Change(("alice",), "alice"),
    "grant add": Change(("bob", REALM, "logs.a"), f"bob may read {REALM}  exact 'logs.a'"),
    "grant remove": Change(("bob", REALM, "logs.a"), f"bob may no longer read {REALM}"),
    "group add": Change((REALM, "lab", "bob"), f"bob is now in lab of {REALM}"),
    "group remove": Change((REALM, "lab", "bob"), f"bob is no longer in lab of {REALM}"),
    "keep set": Change(("memes", "--for", "1h"), "memes"),
    "keep remove": Change(("kept", "--yes"), "kept"),
    "rendezvous credentials": Change(("--rotate",), "new key of the clients"),
    "split registry apply": Change(("-f", "-"), "lambda/app  applied", REGISTRY),
    "split registry remove": Change(TARGET, "lambda/app  removed"),
    "split start": Change((*TARGET, "--config", "-", "--no-hold"), "session 'ann-1' is ready", json.dumps(CONFIG)),
    "split run": Change((*TARGET, "--config", "-", "--", "true"), "session 'ann-1' is ready", json.dumps(CONFIG)),
    "split tail": Change((*TARGET, "--count", "1"), "session 'ann-1' is ready"),
    "split stop": Change(("ann-1", *TARGET), "ann-1  ending"),
}
# Where a test needs more than this fake stage: the file of the test, and its name.
ELSEWHERE: Mapping[str, str] = {
    "arvados bridge": "live/test_bridge.py::test_a_bridge_names_the_realm_and_the_stage_first",
    "deploy": "doctor/test_doctor.py::test_a_deployment_names_the_region_of_its_settings_and_refuses_unknown_ones",
    "destroy": "destroy/test_destroy.py::test_it_shows_a_table_and_asks_first",
    "local up": "local/test_local.py::test_a_started_stage_is_named_with_its_folder",
    "local down": "local/test_local.py::test_a_stage_is_stopped_by_yes_and_named_with_its_port",
    "replay": "history/test_history.py::test_dead_letters_are_sent_at_once_with_yes",
    "report": "history/test_history.py::test_a_report_is_created_by_its_job_printed_and_saved",
    "sign-out": "live/test_sign_in.py::test_a_stored_sign_in_needs_no_code_until_sign_out",
    "verify": "verify/test_verify.py::test_a_run_names_its_stage",
}
ONLY_ASK = {
    *("bindings", "doctor", "exchange list", "exchange match", "grant explain", "grant list", "group list"),
    *("history query", "keep list", "local logs", "local status", "log export", "queue list"),
    *("rendezvous offer", "rendezvous proxy", "rendezvous stats"),  # an offer and a poll leave nothing behind
    *("split audit", "split explain", "split kubernetes crd", "split kubernetes rbac", "split list", "split policy"),
    *("split registry check", "split registry discover", "split registry list", "split status"),
    *("dead-letters", "status", "tail", "trace", "user list", "watch"),
}
DESTROY = {
    "exchange delete": ("xpublic", "--force"),
    "keep remove": ("kept",),
    "queue delete": ("q_alice",),
    "rendezvous credentials": ("--revoke",),
    "user add": ("alice", "--live"),
    "user remove": ("alice",),
}


def commands() -> set[str]:
    """Return the words of every command."""
    return {" ".join(words) for words in leaves()}


def run(command: str, *words: str, given: str = "") -> Result:
    return CliRunner().invoke(app, [*command.split(), "--aws", *words], input=given)


@pytest.fixture(scope="module")
def account() -> Iterator[FakeStage]:
    """Provide a stage with every capability, in an account of its own."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        for name in ("AWS_ENDPOINT_URL", "AWS_REGION"):
            patch.delenv(name, raising=False)
        patch.setattr(settling.time, "sleep", lambda _: None)
        with serving(_outputs(), [URLS + CONTROL, URLS + "split-control"]) as stage:
            _fill(stage)
            yield stage


@pytest.fixture
def stage(account: FakeStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeStage:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cdk.json").write_text("{}")
    # Another test may have removed them.
    run("user add", "alice", "--role", "source", "--yes")
    run("keep set", "kept", "--for", "1h")
    return account


def _outputs() -> dict[str, str]:
    sqs = boto3.client("sqs")
    queues = ("split-control", "snowflake-broker", "memes", "kept", "q_alice", "xpublic")
    urls = {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in queues}
    sqs.create_queue(QueueName=CONTROL, Attributes={"KmsMasterKeyId": KEY})
    boto3.client("lambda").create_event_source_mapping(
        EventSourceArn=ARNS + CONTROL,
        FunctionName=function("control"),
        FunctionResponseTypes=["ReportBatchItemFailures"],
        ScalingConfig={"MaximumConcurrency": 7},
        Enabled=False,
    )
    boto3.client("iam").create_user(UserName="client")
    return {
        "BrokerQueueArn": f"{ARNS}snowflake-broker",
        "ClientUserName": "client",
        "ExchangeControlQueueUrl": URLS + CONTROL,
        "ExchangePrefix": "",
        "ExchangeTable": make_exchange_table().name,
        "LiveWebSocketUrl": "ws://127.0.0.1:1/",
        "SplitControlQueueUrl": urls["split-control"],
        "SplitReplyQueueUrl": reply_queue_url(urls["split-control"]),
        "SplitTable": make_split_table().name,
        "TemporaryQueuePrefix": "mirrord-",
    }


def _fill(stage: FakeStage) -> None:
    queue_url = boto3.client("sqs").create_queue(QueueName="mirrord-1")["QueueUrl"]
    boto3.client("sqs").send_message(QueueUrl=queue_url, MessageBody="hello")
    queue = {"queue_id": "memes", "original": "memes", "temporary": "mirrord-1", "url": queue_url}

    def session(phase: str) -> dict[str, object]:
        return {"session": "ann-1", "target": "lambda/app", "phase": phase, "queues": [queue], "environment": {}}

    def grant(command: Mapping[str, Any]) -> dict[str, object]:
        return {name: command[name] for name in ("user", "exchange", "right", "match", "uri")}

    def members(command: Mapping[str, Any]) -> dict[str, object]:
        return {**{name: command[name] for name in ("exchange", "group")}, "changed": command["users"], "unchanged": []}

    deleted = {"deleted": True, "unbound": [], "lost": 0, "dead_letters": None}
    stage.replies |= exchange_replies() | {
        "apply": lambda _: {"targets": ["lambda/app"]},
        "delete_exchange": lambda _: deleted,
        "delete_queue": lambda _: deleted,
        "unbind_user": lambda _: {"unbound": [], "queues": [], "exchanges": []},
        "forget_user": lambda _: {"ended": []},
        "grant": lambda command: {**grant(command), "granted": True},
        "group_add": members,
        "group_remove": members,
        "heartbeat": lambda _: session("ready"),
        "keep": _kept,
        "remove": lambda command: {"target": command["target"]},
        "secret": lambda command: {"user": command["user"], "methods": ["ticket"]},
        "start": lambda _: session("starting"),
        "status": lambda _: {"splits": [{"sessions": [{"session": "ann-1"}]}]},
        "stop": lambda _: session("ending"),
        "ungrant": lambda command: {**grant(command), "ungranted": True},
    }


def _kept(command: Mapping[str, Any]) -> dict[str, object]:
    return {"queue": command["queue"], "kept_seconds": 3600, "target": "lambda/app", "deleted": 0, "complete": True}


def test_every_command_is_known_to_change_something_or_only_to_ask():
    assert not ONLY_ASK & (CHANGES.keys() | ELSEWHERE.keys())
    assert commands() == ONLY_ASK | CHANGES.keys() | ELSEWHERE.keys()


@pytest.mark.parametrize("command", sorted(CHANGES))
def test_a_change_is_named_with_its_stage(stage, command):
    change = CHANGES[command]

    result = run(command, *change.words, given=change.input)

    assert change.named in result.output
    assert PLACE in result.stderr


@pytest.mark.parametrize("command", sorted(ELSEWHERE))
def test_the_other_changes_are_held_by_a_test_of_their_own(command):
    file, _, name = ELSEWHERE[command].partition("::")

    assert f"def {name}(" in (CHECKOUT / "tests" / "cli" / file).read_text()


@pytest.mark.parametrize("command", sorted(DESTROY))
@pytest.mark.parametrize("option", [(), ("--json",)], ids=["text", "json"])
def test_what_destroys_is_refused_unless_somebody_says_yes(stage, command, option):
    run("rendezvous credentials")

    result = run(command, *DESTROY[command], *option)

    assert isinstance(result.exception, RejectedError)
    assert "give --yes to confirm" in str(result.exception)
