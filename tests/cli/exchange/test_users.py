"""`signalbox user` against a stage whose AWS is moto."""

import json
import stat
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest

from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.aws.exchange.items import rights_version_key, rights_version_of
from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared import confirmation, deployment, settling
from signalbox.clients.deployment import AwsDeployment
from signalbox.errors import RejectedError
from signalbox.live.rights.settling import RIGHTS_SETTLE_SECONDS
from signalbox.sarracenia.broker_url import BrokerAccount
from signalbox.sarracenia.rights.names import InvalidUserName, UserName
from tests.adapters.shared.stubs import ARNS, KEY, URLS, function
from tests.cli.exchange.stage import CONTROL, signalbox
from tests.cli.shared.stage import FakeStage, reply_queue_url, serving
from tests.fakes.aws import aws, exchange_table, local_stage  # noqa: F401 - fixtures

KEYS = ("access_key_id", "secret_access_key")


@pytest.fixture
def waits(monkeypatch) -> list[float]:
    """Return the seconds for which commands have waited, without waiting."""
    found: list[float] = []
    monkeypatch.setattr(settling.time, "sleep", found.append)
    return found


@pytest.fixture
def here(exchange_table, monkeypatch, tmp_path) -> Iterator[Path]:  # noqa: F811
    """Return the folder of a stage that is local except for its AWS."""
    boto3.client("sqs").create_queue(QueueName=CONTROL, Attributes={"KmsMasterKeyId": KEY})
    boto3.client("lambda").create_event_source_mapping(
        EventSourceArn=ARNS + CONTROL,
        FunctionName=function("control"),
        BatchSize=1,
        FunctionResponseTypes=["ReportBatchItemFailures"],
        ScalingConfig={"MaximumConcurrency": 7},
        Enabled=False,  # no function consumes it
    )
    outputs = {"ExchangeControlQueueUrl": URLS + CONTROL, "ExchangePrefix": "", "ExchangeTable": exchange_table.name}
    stage = local_stage(outputs, tmp_path)
    monkeypatch.setattr(deployment, "find_deployment", lambda **_: stage)
    return tmp_path


@pytest.fixture
def removals(here) -> Iterator[FakeStage]:
    """Serve the administrators' control queue; no user has rights in a realm."""
    reply = reply_queue_url(URLS + CONTROL)
    with serving({"ReplyQueueUrl": reply}, [URLS + CONTROL]) as stage:
        stage.replies["forget_user"] = lambda _: {"ended": []}
        stage.replies["unbind_user"] = lambda _: {"unbound": [], "queues": [], "exchanges": []}
        yield stage


def added(*options: str, name: str = "alice", role: str = "source") -> dict[str, Any]:
    return json.loads(signalbox("user", "add", name, "--role", role, "--json", *options).stdout)


def listed() -> list[dict[str, Any]]:
    return json.loads(signalbox("user", "list", "--json").stdout)


def test_a_new_user_gets_a_key_and_a_line_for_sr3(here):
    result = signalbox("user", "add", "alice", "--role", "source", "--json")

    document = json.loads(result.stdout)
    assert (document["user"], document["role"], document["ownership"]) == ("alice", "source", "strict")
    broker = BrokerAccount.parse(document["credentials_conf"])
    assert (broker.user, broker.host, broker.stage) == ("alice", "sqs.us-east-1.amazonaws.com", "signalbox")
    assert (broker.access_key_id, broker.secret_access_key) == tuple(document[name] for name in KEYS)
    assert document["broker"] == "amqpsqs://alice@sqs.us-east-1.amazonaws.com/signalbox"
    queues = [document[name].rpartition("/")[2] for name in ("control_queue", "reply_queue")]
    assert queues == ["signalbox-exchange-control-alice", "signalbox-exchange-reply-alice"]
    assert result.stderr.startswith(f"· the secret is not shown again; commands find it in {here}/users/alice.json\n")
    assert result.stderr.endswith(f"· in the local stage of {here.parent}\n")


def test_the_text_output_has_a_line_for_each_value(here):
    lines = signalbox("user", "add", "alice", "--role", "source").stdout.splitlines()

    assert [line.split("  ")[0] for line in lines] == [
        *("user", "role", "ownership", "access key id", "secret access key", "broker", "credentials conf"),
        *("control queue", "reply queue"),
    ]


def test_the_key_is_kept_where_its_owner_alone_can_read_it(here):
    document = added()
    kept = here / "users" / "alice.json"

    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert json.loads(kept.read_text()) == {"user": "alice", **{name: document[name] for name in KEYS}}


def test_with_a_key_that_is_kept_one_acts_as_its_user(here):
    document = added()

    client = client_of(deployment.find_deployment(), user="alice")

    signer = client.sqs._request_signer._credentials  # type: ignore[attr-defined]
    assert (client.user, signer.access_key) == ("alice", document["access_key_id"])
    assert client.names.stage == "signalbox"


def test_in_aws_a_key_is_not_stored_locally(here, monkeypatch):
    stage = deployment.find_deployment()
    monkeypatch.setattr(
        deployment, "find_deployment", lambda **_: AwsDeployment(stage.outputs, stage.region, stage.rendezvous_url)
    )

    result = signalbox("user", "add", "alice", "--role", "source")

    assert result.stderr.startswith("· the secret is not shown again\n")
    assert list(here.iterdir()) == []


def test_users_are_listed_with_what_they_are(here):
    added()
    added("--loose", name="bob", role="subscriber")

    assert [(one["user"], one["role"], one["ownership"]) for one in listed()] == [
        ("alice", "source", "strict"),
        ("bob", "subscriber", "loose"),
    ]
    rows = [line.split() for line in signalbox("user", "list").stdout.splitlines()]
    assert ["bob", "subscriber", "loose"] in [row[:3] for row in rows]


def test_an_empty_list_of_users_is_stated(here):
    assert signalbox("user", "list").stdout == "no users except the administrators\n"
    assert listed() == []


def test_an_existing_user_gets_another_role_and_keeps_the_key(removals):
    unbound = [{"exchange": "xs_bob", "queue": "q_alice", "pattern": "#"}]
    removals.replies["unbind_user"] = lambda _: {"unbound": unbound, "queues": ["q_alice"], "exchanges": []}
    added()
    before = listed()[0]["created_at"]

    result = signalbox("user", "add", "alice", "--role", "feeder", "--json")

    document = json.loads(result.stdout)
    assert [document[name] for name in ("user", "role", "ownership")] == ["alice", "feeder", "strict"]
    assert "secret_access_key" not in document
    assert "user 'alice' existed (source, strict) and keeps the key" in result.stderr
    assert "binding of xs_bob to q_alice by # removed" in result.stderr
    (asked,) = removals.asked
    assert (asked["user"], asked["role"], asked["ownership"]) == ("alice", "source", "strict")
    assert [(one["role"], one["created_at"]) for one in listed()] == [("feeder", before)]


def test_a_repeated_command_completes_an_interrupted_one(here):
    added()
    iam = boto3.client("iam")
    (key,) = iam.list_access_keys(UserName="signalbox_alice")["AccessKeyMetadata"]
    iam.delete_access_key(UserName="signalbox_alice", AccessKeyId=key["AccessKeyId"])

    document = added()

    assert json.loads((here / "users" / "alice.json").read_text())["access_key_id"] == document["access_key_id"]
    assert [one["user"] for one in listed()] == ["alice"]


def test_a_rotation_makes_another_key_and_keeps_it(here):
    first = added()

    result = signalbox("user", "rotate", "alice", "--json")

    second = json.loads(result.stdout)
    assert (second["user"], second["role"]) == ("alice", "source")
    assert second["access_key_id"] != first["access_key_id"]
    assert json.loads((here / "users" / "alice.json").read_text())["access_key_id"] == second["access_key_id"]
    assert "the previous key works until the next rotation" in result.stderr


def test_a_rotation_refuses_the_commands_that_were_sent_before(here, exchange_table):  # noqa: F811
    """The thief of a key may have sent some with a delay of 15 minutes."""
    records = DynamoUsers(exchange_table)
    added()
    before = records.find(UserName("alice"))

    signalbox("user", "rotate", "alice")

    after = records.find(UserName("alice"))
    assert (before.commands_from, after) == (None, replace(before, commands_from=after.commands_from))
    assert after.commands_from <= datetime.now(UTC)


def test_a_missing_user_has_no_key_to_rotate(here):
    with pytest.raises(RejectedError, match="`signalbox user add bob --role ROLE` creates it"):
        signalbox("user", "rotate", "bob")


def test_removing_a_user_leaves_nothing_behind(here, removals):
    added()

    assert signalbox("user", "remove", "alice", "--yes").stdout == "alice  removed\n"
    shown = signalbox("user", "remove", "alice", "--json").stdout
    left = {"unbound": [], "queues": [], "exchanges": []}
    assert json.loads(shown) == {"user": "alice", "removed": False, "ended": [], **left}
    assert signalbox("user", "remove", "alice").stdout == "alice  did not exist\n"
    assert listed() == []
    assert list((here / "users").iterdir()) == []
    assert boto3.client("iam").list_users()["Users"] == []


def test_a_user_is_removed_after_a_yes_only(removals, monkeypatch, here):
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)
    added()

    declined = signalbox("user", "remove", "alice", input="n\n")

    assert declined.exit_code == 1
    assert f"Delete user 'alice' of the local stage of {here.parent} with all keys?" in declined.stderr
    assert len(listed()) == 1
    assert "did you mean 'alice'?" in signalbox("user", "remove", "alcie").stdout


def test_a_mistyped_live_only_user_is_answered_with_the_nearest(removals):
    live_only("lee")

    assert signalbox("user", "remove", "lea").stdout == "lea  did not exist; did you mean 'lee'?\n"


def test_a_removal_ends_rights_before_a_token_can_have_the_name_and_after_the_last_command(removals):
    known = []
    removals.replies["forget_user"] = lambda _: known.append([one["user"] for one in listed()]) or {"ended": []}
    added()

    signalbox("user", "remove", "alice", "--yes")

    assert known == [["alice"], []]


def test_a_removal_reports_the_rights_that_end_in_each_realm(removals):
    ended = [
        {"exchange": "xs_a.fifo", "grants": 2, "denies": 1, "groups": []},
        {"exchange": "xs_b.fifo", "grants": 0, "denies": 0, "groups": ["lab", "staff"]},
    ]
    removals.replies["forget_user"] = lambda command: {"ended": ended if command["user"] == "alice" else []}
    added()

    assert signalbox("user", "remove", "alice", "--yes").stdout == (
        "alice  removed\n"
        "rights in xs_a.fifo ended: 2 grants, 1 denies\n"
        "rights in xs_b.fifo ended: 0 grants, 0 denies, groups lab, staff\n"
    )
    assert json.loads(signalbox("user", "remove", "alice", "--yes", "--json").stdout)["ended"] == ended


def test_a_removal_reports_the_bindings_that_end_and_what_stays(removals):
    unbound = [{"exchange": "xpublic", "queue": "q_alice", "pattern": "#"}]
    left = {"unbound": unbound, "queues": ["q_alice"], "exchanges": ["xs_alice"], "unlisted": 7}
    removals.replies["unbind_user"] = lambda command: {"user": command["user"], **left}
    added()

    assert signalbox("user", "remove", "alice", "--yes").stdout == (
        "alice  removed\n"
        "binding of xpublic to q_alice by # removed\n"
        "stays, for the next user of this name: q_alice, xs_alice\n"
        "7 more are not listed: the history has each binding and realm\n"
    )
    assert json.loads(signalbox("user", "remove", "alice", "--yes", "--json").stdout) == {
        "user": "alice",
        "removed": False,
        "ended": [],
        **left,
    }


def test_a_new_user_gets_what_an_earlier_one_has_left_only_on_request(here):
    sqs = boto3.client("sqs")
    left = ["q_alice", "q_alice_logs-dlq", "xs_alice.fifo", "xs_alice_lab", "xs_alice_lab-dlq"]
    for name in (*left, "q_alice2", "q_alicia", "xl_alice", "alice"):
        sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"} if name.endswith(".fifo") else {})

    for options in (["--role", "source"], ["--live"]):
        with pytest.raises(RejectedError, match=f"^{', '.join(left)} would belong to the new user.*give --yes"):
            signalbox("user", "add", "alice", *options)
    assert (listed(), boto3.client("iam").list_users()["Users"]) == ([], [])
    with pytest.raises(RejectedError, match=r"^q_alice, q_alice2, q_alice_logs-dlq, xs_alice\.fifo, xs_alice_lab, "):
        signalbox("user", "add", "alice", "--role", "source", "--loose")

    signalbox("user", "add", "alice", "--role", "source", "--yes")
    added()  # an existing user is not asked about
    live_only("bea")
    assert [one["user"] for one in listed()] == ["alice", "bea"]


def live_only(*arguments: str, **options: Any) -> Any:
    return json.loads(signalbox("user", "add", *arguments, "--live", "--json", **options).stdout)


def test_a_live_only_user_is_a_record_without_identity_and_queue(here):
    assert live_only("lee") == {"user": "lee", "role": "subscriber", "ownership": "strict", "live_only": True}
    assert live_only("lee", "--role", "source")["role"] == "source"

    assert [(one["user"], one["role"], one["live_only"]) for one in listed()] == [("lee", "source", True)]
    assert boto3.client("iam").list_users()["Users"] == []
    assert [url.rpartition("/")[2] for url in boto3.client("sqs").list_queues()["QueueUrls"]] == [CONTROL]
    with pytest.raises(RejectedError, match="'lee' only joins live and has no key: `signalbox user add lee --role sou"):
        signalbox("user", "rotate", "lee")


def test_the_list_of_users_says_who_is_live_only(here):
    added()
    live_only("bea", "lee")

    assert [(one["user"], one["live_only"]) for one in listed()] == [("alice", False), ("bea", True), ("lee", True)]
    rows = [line.split()[:4] for line in signalbox("user", "list").stdout.splitlines()]
    assert ["alice", "source", "strict", "no"] in rows
    assert ["lee", "subscriber", "strict", "yes"] in rows


def test_many_live_only_users_come_from_a_file(here):
    file = here / "lab.csv"
    file.write_text("\ufeffuser, role\nlee,\nmia, source\n")

    result = signalbox("user", "add", "bea", "--live", "--from", str(file), "--role", "feeder")
    assert result.stdout == "3 live-only users\n"
    assert [(one["user"], one["role"]) for one in listed()] == [("bea", "feeder"), ("lee", "feeder"), ("mia", "source")]

    again = signalbox("user", "add", "--live", "--from", "-", "--json", input="role,user\n,mia\n")
    assert [(one["user"], one["role"]) for one in json.loads(again.stdout)] == [("mia", "subscriber")]
    assert "· 1 existed and were only changed\n" in again.stderr


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["expected a header with the column 'user'"]),
        ("name\nlee\n", ["expected a header with the column 'user', and optionally 'role', not 'name'"]),
        ("user,role\nlee,king\na_b,\n,\nlee,source,x\n", ["line 2: role 'king'", "line 3: ", "line 4: ", "line 5: "]),
        ("user\nlee\nlee\n", ["users are named more than once: lee"]),
        ("user\n", ["no user is named"]),
    ],
)
def test_all_problems_of_a_file_of_users_are_reported_together(here, text, problems):
    with pytest.raises(RejectedError) as caught:
        signalbox("user", "add", "--live", "--from", "-", input=text)

    found = str(caught.value).splitlines()
    assert len(found) == len(problems)
    assert all(line.startswith(problem) for line, problem in zip(found, problems, strict=True))
    assert listed() == []


@pytest.mark.usefixtures("removals")
def test_a_user_becomes_live_only_after_a_yes_and_back(here, monkeypatch):
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)
    added()
    before = listed()[0]["created_at"]

    declined = signalbox("user", "add", "alice", "bea", "--live", input="n\n")
    assert declined.exit_code == 1
    assert "Delete the access keys and the control queue of 'alice'" in declined.stderr
    assert [(one["user"], one["live_only"]) for one in listed()] == [("alice", False)]

    signalbox("user", "add", "alice", "bea", "--live", "--yes")
    assert [(one["user"], one["live_only"]) for one in listed()] == [("alice", True), ("bea", True)]
    assert listed()[0]["created_at"] == before
    assert boto3.client("iam").list_users()["Users"] == []
    names = [url.rpartition("/")[2] for url in boto3.client("sqs").list_queues()["QueueUrls"]]
    assert [name for name in names if "alice" in name] == []
    assert list((here / "users").iterdir()) == []

    assert "access_key_id" in added()
    alice, _ = listed()
    assert (alice["user"], alice["live_only"], alice["created_at"]) == ("alice", False, before)


def test_the_question_names_ten_users_at_most(here):
    names = [f"lee{number:02}" for number in range(11)]
    for name in names:
        added(name=name)

    with pytest.raises(RejectedError, match="'lee09' and 1 more of the local stage of "):
        signalbox("user", "add", *names, "--live")


@pytest.mark.usefixtures("removals")
def test_a_command_ends_when_no_function_uses_the_former_rights_any_more(waits, exchange_table):  # noqa: F811
    def version() -> int:
        return rights_version_of(exchange_table.get_item(Key=rights_version_key()).get("Item", {}))

    added()
    live_only("lee")
    added()
    live_only("lee")
    assert (waits, version()) == ([], 0)

    added(role="subscriber")
    live_only("lee", "--role", "source")
    assert (waits, version()) == ([RIGHTS_SETTLE_SECONDS] * 2, 2)


def test_a_live_only_user_is_removed(removals):
    live_only("lee")

    assert signalbox("user", "remove", "lee", "--yes").stdout == "lee  removed\n"
    assert listed() == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("lee",), "--role is missing"),
        (("lee", "mia", "--role", "source"), "name one user"),
        (("--role", "source"), "name one user"),
        (("lee", "--from", "x.csv", "--role", "source"), "name one user"),
        (("--live",), "no user is named"),
        (("lee", "lee", "--live"), "users are named more than once: lee"),
        (("l" * 33, "--live"), "expected 1 to 32"),
    ],
)
def test_users_with_keys_are_added_one_by_one(here, arguments, problem):
    with pytest.raises(RejectedError, match=problem):
        signalbox("user", "add", *arguments)


@pytest.mark.parametrize("command", [("add", "--role", "source"), ("rotate",), ("remove",)], ids=lambda c: c[0])
def test_a_name_that_cannot_be_is_refused(here, command):
    name, *options = command

    with pytest.raises(InvalidUserName, match="'a_b'"):
        signalbox("user", name, "a_b", *options)


def test_a_role_must_be_one_of_four(here):
    result = signalbox("user", "add", "alice", "--role", "king")

    assert result.exit_code == 2
    assert "subscriber" in result.stderr
