"""`signalbox exchange`, `queue`, `bind`, `unbind` and `bindings` against a stage."""

import json
from collections.abc import Iterator
from datetime import datetime

import pytest

from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared import confirmation
from signalbox.clients.deployment import AwsDeployment
from signalbox.control.protocol import CommandRejected
from signalbox.errors import RejectedError
from signalbox.exchange.control.errors import NotFound
from signalbox.exchange.model.patterns import InvalidPattern
from signalbox.queues import InvalidQueueName
from signalbox.sarracenia.rights.names import InvalidExchangeName
from tests.cli.exchange.stage import CONTROL, DECLARED_AT, PLACE, exchange_stage, signalbox
from tests.cli.shared.stage import FakeStage, Refusal, cells
from tests.fakes.aws import aws, local_stage  # noqa: F401 - a fixture


@pytest.fixture
def stage(aws) -> Iterator[FakeStage]:  # noqa: F811
    with exchange_stage() as stage:
        yield stage


def said(stage: FakeStage) -> list[dict[str, object]]:
    hidden = ("id", "reply")
    return [{name: value for name, value in one.items() if name not in hidden} for one in stage.asked]


def test_declaring_an_exchange_prints_it(stage):
    result = signalbox("exchange", "declare", "xpublic", "--alternate", "xrest")

    assert said(stage) == [{"command": "declare_exchange", "exchange": "xpublic", "alternate": "xrest"}]
    assert ["exchange", "xpublic"] in cells(result.stdout)
    assert ["ordered", "no"] in cells(result.stdout)
    assert ["created", "by", "-"] in cells(result.stdout)
    assert result.stderr == PLACE


def test_an_alternate_may_be_taken_away(stage):
    signalbox("exchange", "declare", "xpublic", "--alternate", "")

    assert said(stage)[0]["alternate"] == ""


def test_an_exchange_that_is_not_connected_yet_says_so(stage):
    assert "not connected to the router yet" in signalbox("exchange", "declare", "xs_new").stderr


def test_json_output_of_a_declaration_is_the_stages_reply(stage):
    document = json.loads(signalbox("exchange", "declare", "xs_a.fifo", "--json").stdout)

    assert (document["ordered"], document["connected"]) == (True, True)


@pytest.mark.parametrize(
    ("deleted", "shown", "progress"),
    [
        (
            {"deleted": False, "unbound": [], "lost": 0, "dead_letters": None},
            "xpublic  did not exist; there is 'xs_alice'\n",
            "",
        ),
        (
            {"deleted": True, "unbound": [{}], "lost": 1, "dead_letters": None},
            "xpublic  deleted\n",
            "· 1 binding deleted with it\n· about 1 message deleted with it\n",
        ),
        (
            {
                "deleted": True,
                "unbound": [{}, {}],
                "unlisted": 398,
                "lost": 7,
                "dead_letters": {"sqs_name": "xpublic-dlq", "waiting": 2},
            },
            "xpublic  deleted\n",
            (
                "· 400 bindings deleted with it\n· about 7 messages deleted with it\n"
                "· its dead-letter queue 'xpublic-dlq' is kept with about 2 messages\n"
            ),
        ),
    ],
    ids=["not there", "one of each", "several"],
)
def test_a_deletion_prints_what_was_deleted_and_what_is_kept(stage, deleted, shown, progress):
    stage.replies |= {"delete_exchange": lambda _: deleted, "exchanges": lambda _: [{"exchange": "xs_alice"}]}

    result = signalbox("exchange", "delete", "xpublic", "--force", "--yes")

    assert said(stage)[0] == {"command": "delete_exchange", "exchange": "xpublic", "force": True}
    assert (result.stdout, result.stderr) == (shown, progress + PLACE)
    assert json.loads(signalbox("exchange", "delete", "xpublic", "--json").stdout) == deleted


DELETIONS = [("exchange", "delete", "xpublic", "--force"), ("queue", "delete", "q_alice.${USER}")]


@pytest.mark.parametrize("command", DELETIONS, ids=" ".join)
def test_a_deletion_with_messages_is_asked_for(stage, monkeypatch, command):
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)
    deleted = {"deleted": True, "unbound": [], "lost": 3, "dead_letters": None}
    stage.replies |= {"delete_exchange": lambda _: deleted, "delete_queue": lambda _: deleted}

    declined = signalbox(*command, input="no\n")

    assert declined.exit_code == 1
    assert stage.asked == []
    assert f"Delete {command[0]} '{command[2]}' of stage signalbox in us-east-1 with its bindings" in declined.stderr
    assert signalbox(*command, input="yes\n").stdout == f"{command[2]}  deleted\n"


@pytest.mark.parametrize("command", DELETIONS, ids=" ".join)
@pytest.mark.parametrize("option", [(), ("--json",)], ids=["text", "json"])
def test_a_deletion_that_cannot_be_confirmed_is_refused(stage, command, option):
    with pytest.raises(RejectedError, match="give --yes to confirm"):
        signalbox(*command, *option)
    assert stage.asked == []


def test_the_stages_word_for_an_option_is_the_option(stage):
    def refuse(_command: object) -> object:
        raise Refusal("exchange 'xpublic' is bound (…): unbind it first, or delete with force")

    stage.replies["delete_exchange"] = refuse

    with pytest.raises(CommandRejected, match=r"or delete with --force$"):
        signalbox("exchange", "delete", "xpublic")


def test_times_are_local_and_settings_are_words_for_people(stage):
    live = {"retention": {"count": 100, "age_seconds": 3600}, "order_by": "topic"}
    stage.replies["declare_exchange"] = lambda _: {"exchange": "xs_a.fifo", "created_at": DECLARED_AT, "live": live}

    rows = signalbox("exchange", "declare", "xs_a.fifo").stdout.splitlines()

    at = datetime.fromisoformat(DECLARED_AT).astimezone()
    assert rows[1].split() == ["created", "at", f"{at:%Y-%m-%d}", f"{at:%H:%M:%S}"]
    assert rows[2].endswith("  retention count 100, age seconds 1h, order by topic")


def test_exchanges_are_listed(stage):
    one = {
        "exchange": "xs_alice.fifo",
        "ordered": True,
        "alternate": None,
        "created_by": "alice",
        "created_at": DECLARED_AT,
        "sqs_name": "xs_alice.fifo",
    }
    stage.replies["exchanges"] = lambda _: [one, {**one, "exchange": "xpublic", "ordered": False, "created_by": None}]

    rows = cells(signalbox("exchange", "list").stdout)

    assert any(row[:3] == ["xs_alice.fifo", "ordered", "alice"] for row in rows)
    assert any(row[:3] == ["xpublic", "standard", "administrators"] for row in rows)
    assert json.loads(signalbox("exchange", "list", "--json").stdout)[0] == one


@pytest.mark.parametrize(
    ("command", "arguments", "text"),
    [
        ("exchanges", ("exchange", "list"), "no exchanges\n"),
        ("queues", ("queue", "list"), "no queues\n"),
        ("bindings", ("bindings",), "no bindings\n"),
    ],
    ids=["exchanges", "queues", "bindings"],
)
def test_empty_lists_are_stated(stage, command, arguments, text):
    stage.replies[command] = lambda _: []

    assert signalbox(*arguments).stdout == text
    assert json.loads(signalbox(*arguments, "--json").stdout) == []


def refuse_unknown(command):
    raise Refusal(f"exchange {command['exchange']!r} does not exist: declare it first; did you mean 'xpublic'?")


@pytest.mark.parametrize("words", [("bindings", "xpublc"), ("unbind", "xpublc", "q_alice", "v03.#")])
def test_the_bindings_of_a_mistyped_exchange_are_not_an_empty_list(stage, words):
    stage.replies["bindings"] = refuse_unknown

    with pytest.raises(CommandRejected, match=r"exchange 'xpublc' does not exist: .*did you mean 'xpublic'"):
        signalbox(*words)


def test_a_queue_is_declared_with_times_as_people_write_them(stage):
    options = ("--expires", "5m", "--message-ttl", "never", "--prefetch", "3", "--maximum-receives", "9")
    options = (*options, "--group-by", "topic")

    signalbox("queue", "declare", "q_alice", *options)

    settings = {"expires_seconds": 300, "message_ttl_seconds": 0, "prefetch": 3, "maximum_receives": 9}
    settings["group_by"] = "topic"
    assert said(stage) == [{"command": "declare_queue", "queue": "q_alice", **settings}]


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("2h", 7200), ("1d", 86400), ("1w", 604_800), ("0", 0)]
)
def test_a_time_is_a_number_with_or_without_a_unit(stage, text, seconds):
    signalbox("queue", "declare", "q_alice", "--expires", text)

    assert said(stage)[0]["expires_seconds"] == seconds


@pytest.mark.parametrize("text", ["", "m", "5 m", "1.5h", "-1", "soon"])
def test_another_time_is_refused_with_what_is_expected(stage, text):
    with pytest.raises(RejectedError, match=rf"^--expires: expected .* never, not '{text}'$"):
        signalbox("queue", "declare", "q_alice", "--expires", text)


def test_a_queue_whose_name_sqs_does_not_take_is_shown_with_both(stage):
    result = signalbox("queue", "declare", "q_alice.in")

    assert ["queue", "q_alice.in"] in cells(result.stdout)
    assert ["sqs", "name", "q_alice_in"] in cells(result.stdout)
    note = "· SQS does not allow the name 'q_alice.in': in SQS the queue is 'q_alice_in'\n"
    assert sorted(result.stderr.splitlines()) == sorted((PLACE + note).splitlines())


def test_a_queue_is_deleted(stage):
    stage.replies["delete_queue"] = lambda _: {"deleted": True, "unbound": [], "lost": 0, "dead_letters": None}

    assert signalbox("queue", "delete", "q_alice", "--if-empty").stdout == "q_alice  deleted\n"
    assert said(stage) == [{"command": "delete_queue", "queue": "q_alice", "if_empty": True}]
    assert json.loads(signalbox("queue", "delete", "q_alice", "--yes", "--json").stdout)["deleted"] is True


def test_queues_are_listed_with_their_names_in_sqs(stage):
    stage.replies["queues"] = lambda _: [
        stage.replies["declare_queue"]({"queue": "q_alice.in", "expires_seconds": 3600}),
        stage.replies["declare_queue"]({"queue": "q_bob"}) | {"owner": None, "consumed_at": DECLARED_AT},
    ]

    rows = cells(signalbox("queue", "list").stdout)

    assert ["q_alice.in", "q_alice_in", "alice", "1h", "never", "25", "5", "none"] in rows
    assert any(row[:3] == ["q_bob", "q_bob", "administrators"] for row in rows)
    assert json.loads(signalbox("queue", "list", "--json").stdout)[1]["queue"] == "q_bob"


def test_a_binding_of_old_times_can_be_taken_away(stage):
    signalbox("unbind", "xpublic", "q_alice", "#.a.#.b.#")

    assert said(stage)[0]["pattern"] == "#.a.#.b.#"


def test_several_patterns_are_bound_at_once(stage):
    result = signalbox("bind", "xpublic", "q_alice", "a.#", "")

    fields = {"command": "bind", "exchange": "xpublic", "queue": "q_alice"}
    assert said(stage) == [{**fields, "pattern": "a.#"}, {**fields, "pattern": ""}]
    assert result.stdout == ("xpublic → q_alice  a.#  bound\nxpublic → q_alice  '' (the empty routing key)  bound\n")


def test_an_exchange_may_be_bound_to_another(stage):
    (bound,) = json.loads(signalbox("bind", "xpublic", "xs_alice", "#", "--json").stdout)

    assert bound == {"exchange": "xpublic", "destination": "xs_alice", "pattern": "#", "bound": True}


def test_a_binding_that_exists_is_no_change(stage):
    stage.replies["bind"] = lambda command: {"exchange": "xpublic", "bound": True, "was_bound": True}

    assert signalbox("bind", "xpublic", "q_alice", "a.#").stdout == "xpublic → q_alice  a.#  was bound already\n"


def test_removing_a_missing_binding_is_answered_with_the_nearest(stage):
    result = signalbox("unbind", "xpublic", "q_alice", "a.#", "v3.#")

    assert result.stdout == (
        "xpublic → q_alice  a.#  unbound\nxpublic → q_alice  v3.#  was not bound; did you mean 'v03.#'?\n"
    )
    assert [one["unbound"] for one in json.loads(signalbox("unbind", "xpublic", "q_a", "b", "--json").stdout)] == [
        False
    ]


def test_bindings_are_listed(stage):
    found = [
        {"exchange": "xpublic", "queue": "q_alice", "pattern": "a.#"},
        {"exchange": "xpublic", "destination": "xs_alice", "pattern": ""},
    ]
    stage.replies["bindings"] = lambda _: found

    rows = cells(signalbox("bindings", "xpublic").stdout)

    assert ["xpublic", "q_alice", "a.#"] in rows
    assert ["xpublic", "xs_alice", "''", "(the", "empty", "routing", "key)"] in rows
    assert said(stage)[0]["exchange"] == "xpublic"
    assert json.loads(signalbox("bindings", "--json").stdout) == found


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (("bind", "q_alice", "xpublic", "#"), RejectedError, "give 'xpublic' first"),
        (("unbind", "q_alice", "q_bob", "#"), RejectedError, "the exchange comes first, then the queue$"),
        (("bind", "xpublic", "alice", "#"), InvalidQueueName, "queue 'alice': expected 'q_'"),
        (("bind", "xpublic", "q_alice", "#.#.#"), InvalidPattern, "3 times"),
        (("exchange", "declare", "weather"), InvalidExchangeName, "exchange 'weather': expected 'x'"),
        (("queue", "declare", "weather"), InvalidQueueName, "queue 'weather': expected 'q_'"),
    ],
    ids=["turned around", "two queues", "no name", "pattern", "exchange", "queue"],
)
def test_invalid_arguments_are_refused_without_a_command(stage, arguments, error, text):
    with pytest.raises(error, match=text):
        signalbox(*arguments)
    assert stage.asked == []


def test_a_user_in_aws_uses_the_own_control_queue(stage):
    stage.replies["bindings"] = lambda _: []

    signalbox("bindings", "--user", "alice")

    assert stage.asked_in == [f"{CONTROL}-alice"] * 2
    assert [one["command"] for one in stage.asked] == ["whoami", "bindings"]


def test_an_unknown_user_is_reported(stage):
    with pytest.raises(NotFound, match="stage 'signalbox' has no user 'bob'"):
        signalbox("bindings", "--user", "bob")


def test_a_user_of_the_local_stage_needs_a_key_that_is_there(stage, tmp_path):
    deployment = local_stage(stage.outputs, tmp_path)

    with pytest.raises(
        RejectedError, match=r"no key of user 'bob' \(.*/users/bob.json\): .*`signalbox user rotate bob`"
    ):
        client_of(deployment, user="bob")


def test_in_aws_the_default_credentials_are_used(stage):
    with pytest.raises(RejectedError, match="for the local stage only"):
        client_of(AwsDeployment(stage.outputs, "us-east-1", ""), user="bob")
