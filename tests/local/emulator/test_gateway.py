"""The emulator's front door, called as an ASGI server calls it."""

import asyncio
import contextvars
import json
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from signalbox.local.emulator.gateway import (
    DeliveryBuffer,
    Gateway,
    QuickInserts,
    Routes,
    UnpackedOnce,
    as_aws_asks,
    at_most_every,
    noting_status,
    on_the_spot,
    passing_senders,
    unless_whole,
    with_senders,
)
from signalbox.local.state import write_json

TARGET = "/_aws/execute-api/abc/$default"


class Emulator:
    """Stands for MiniStack: remembers what reached it, and accepts WebSockets without choosing a subprotocol."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []

    async def __call__(self, scope, receive, send):
        self.scopes.append(scope)
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})


@pytest.fixture
def emulator():
    return Emulator()


@pytest.fixture
def gateway(emulator, tmp_path):
    write_json(tmp_path / "routes.json", {"rendezvous": TARGET})
    return Gateway(emulator, Routes(tmp_path / "routes.json"), "instance-1")


def call(gateway, path, *, kind="http", headers=(), **more):
    """Make one connection; return what the client gets."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": f"{kind}.request"}

    scope = {"type": kind, "path": path, "raw_path": path.encode(), "headers": list(headers), **more}
    asyncio.run(gateway(scope, receive, send))
    return sent


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/rendezvous/proxy", f"{TARGET}/proxy"),
        ("/rendezvous/", f"{TARGET}/"),
        ("/rendezvous", f"{TARGET}/"),
        ("/rendezvous/amp/client/a/b", f"{TARGET}/amp/client/a/b"),
        ("/rendezvousing/proxy", "/rendezvousing/proxy"),
        ("/bucket/rendezvous/key", "/bucket/rendezvous/key"),
        ("/", "/"),
    ],
)
def test_a_stable_prefix_reaches_the_api_behind_it_and_nothing_else_changes(gateway, emulator, path, expected):
    call(gateway, path)

    assert emulator.scopes[0]["path"] == expected
    assert emulator.scopes[0]["raw_path"] == expected.encode()


def test_an_escaped_path_stays_escaped_where_it_was(gateway, emulator):
    call(gateway, "/rendezvous/amp/client/a/b", raw_path=b"/rendezvous/amp/client/a%2Fb")

    assert emulator.scopes[0]["raw_path"] == f"{TARGET}/amp/client/a%2Fb".encode()


def test_a_new_deployment_is_noticed_without_a_restart(gateway, emulator, tmp_path):
    call(gateway, "/rendezvous/proxy")

    write_json(tmp_path / "routes.json", {"rendezvous": "/_aws/execute-api/new/$default"})
    call(gateway, "/rendezvous/proxy")

    assert emulator.scopes[1]["path"] == "/_aws/execute-api/new/$default/proxy"


def test_before_the_first_deployment_every_path_is_the_emulators(emulator, tmp_path):
    call(Gateway(emulator, Routes(tmp_path / "absent.json"), "instance-1"), "/rendezvous/proxy")

    assert emulator.scopes[0]["path"] == "/rendezvous/proxy"


def test_loopback_counts_as_tls_so_that_policies_which_ask_for_it_can_stay(gateway, emulator):
    call(gateway, "/bucket", headers=[(b"host", b"127.0.0.1")])

    assert emulator.scopes[0]["headers"] == [(b"host", b"127.0.0.1"), (b"x-forwarded-proto", b"https")]


def test_who_says_that_it_came_without_tls_is_believed(gateway, emulator):
    call(gateway, "/bucket", headers=[(b"X-Forwarded-Proto", b"http")])

    assert emulator.scopes[0]["headers"] == [(b"X-Forwarded-Proto", b"http")]


@pytest.mark.parametrize("path", ["/_ministack/reset", "/_ministack/config", "/_localstack/health"])
def test_pages_that_change_the_emulator_without_a_signature_are_closed(gateway, emulator, path):
    answer = call(gateway, path)

    assert answer[0]["status"] == 403
    assert emulator.scopes == []


@pytest.mark.parametrize("path", ["/_ministack/health", "/_ministack/cfn-response/token"])
def test_pages_that_stacks_need_stay_open(gateway, emulator, path):
    call(gateway, path)

    assert emulator.scopes[0]["path"] == path


def test_the_health_page_says_whose_emulator_this_is(gateway):
    start, body = call(gateway, "/_signalbox/health")

    assert start["status"] == 200
    assert json.loads(body["body"]) == {"status": "ok", "instance": "instance-1"}


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        (["wamp.2.json"], {"type": "websocket.accept", "subprotocol": "wamp.2.json"}),
        (["wamp.2.msgpack", "wamp.2.json"], {"type": "websocket.accept", "subprotocol": "wamp.2.json"}),
        (["mqtt"], {"type": "websocket.accept"}),
        ([], {"type": "websocket.accept"}),
    ],
    ids=["ours", "ours among others", "another", "none"],
)
def test_the_subprotocol_is_chosen_when_it_is_offered(gateway, offered, expected):
    answer = call(gateway, "/rendezvous/", kind="websocket", subprotocols=offered)

    assert answer == [expected]


@pytest.mark.parametrize("status", [400, "429"])
def test_a_websocket_is_refused_by_the_status_that_its_function_answers(tmp_path, status):
    answer = call(answering(tmp_path, {"statusCode": status, "body": "why"}), "/live-ws", kind="websocket")

    assert answer == [
        {"type": "websocket.http.response.start", "status": int(status), "headers": []},
        {"type": "websocket.http.response.body", "body": b""},
    ]


@pytest.mark.parametrize("answer", [{"statusCode": 200}, {}, None], ids=["fine", "no status", "nothing"])
def test_a_websocket_that_was_accepted_is_closed_as_it_is_closed_otherwise(tmp_path, answer):
    accepted, closed = call(answering(tmp_path, answer, "said"), "/live-ws", kind="websocket")

    assert (accepted, closed) == ({"type": "websocket.accept"}, CLOSED)


def test_a_websocket_that_no_function_refused_is_closed_as_it_was(tmp_path):
    assert call(answering(tmp_path), "/live-ws", kind="websocket") == [CLOSED]


CLOSED = {"type": "websocket.close", "code": 1008}


def answering(tmp_path, *answers):
    """Return a gateway of an emulator whose function answers this at `$connect`, and then to messages."""

    async def invoke(route, event_type, *, answer):
        return answer

    invoked = noting_status(invoke)

    async def websocket(scope, receive, send):
        for number, answer in enumerate(answers):
            await invoked("route", "MESSAGE" if number else "CONNECT", answer=answer)
            if number == 0 and int((answer or {}).get("statusCode", 200)) < 300:
                await send({"type": "websocket.accept"})
        await send(CLOSED)

    return Gateway(websocket, Routes(tmp_path / "absent.json"), "instance-1")


def test_whatever_else_the_server_says_goes_through(gateway, emulator):
    call(gateway, "", kind="lifespan")

    assert emulator.scopes[0]["type"] == "lifespan"


def test_routes_are_read_again_only_when_the_file_changed(tmp_path, monkeypatch):
    write_json(tmp_path / "routes.json", {"rendezvous": TARGET})
    routes = Routes(tmp_path / "routes.json")
    routes.target("/rendezvous/proxy")

    monkeypatch.setattr(Path, "read_text", None)

    assert routes.target("/rendezvous/answer") == f"{TARGET}/answer"


def test_records_are_delivered_together_for_each_destination_as_the_first_caller():
    delivered = []
    caller = contextvars.ContextVar("caller", default="nobody")
    buffer = DeliveryBuffer(lambda *what: delivered.append((caller.get(), *what)))
    stream, near, far = {"arn": "arn:s"}, {"id": "near"}, {"id": "far"}
    for name, destination, payload in (("a", near, b"1\n"), ("b", near, b"2\n"), ("b", far, b"3\n")):
        context = contextvars.copy_context()
        context.run(caller.set, name)
        context.run(buffer.put, stream, destination, [("id", payload)])
    assert delivered == []

    buffer.flush()
    buffer.flush()

    assert delivered == [
        ("a", stream, near, [("gathered", b"1\n2\n")]),
        ("b", stream, far, [("gathered", b"3\n")]),
    ]


class Connection:
    """What DuckDB's connection was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[object]]] = []
        self.closed = False

    def execute(self, statement: str, values: list[object]) -> None:
        self.told.append((statement, values))

    def close(self) -> None:
        self.closed = True


def test_rows_are_inserted_a_hundred_at_a_time():
    connection = Connection()
    quick = QuickInserts(connection)

    quick.executemany("INSERT INTO t VALUES (?, ?)", [[number, "x"] for number in range(101)])
    quick.close()

    assert [(told.count("(?, ?)"), values[:2], len(values)) for told, values in connection.told] == [
        (100, [0, "x"], 200),
        (1, [100, "x"], 2),
    ]
    assert connection.told[1][0] == "INSERT INTO t VALUES (?, ?)"
    assert connection.closed


def asked_of_aws(action: str, resource: str) -> tuple[str, str]:
    """Return the action and the resource for which the emulator asks instead."""

    def enforce(key, action, service, region, *, resource_arn, service_context):
        assert (key, region, service_context) == ("key", "us-east-1", {"some": "context"})
        return action, resource_arn

    enforced = as_aws_asks(enforce, lambda: "123456789012")
    service = action.partition(":")[0]
    return enforced("key", action, service, "us-east-1", resource_arn=resource, service_context={"some": "context"})


@pytest.mark.parametrize(
    ("action", "asked"),
    [("sqs:SendMessageBatch", "sqs:SendMessage"), ("sqs:DeleteQueue", "sqs:DeleteQueue")],
)
def test_a_batch_needs_the_permission_for_one_message_as_on_aws(action, asked):
    assert asked_of_aws(action, "arn:q") == (asked, "arn:q")


@pytest.mark.parametrize(
    ("action", "asked"),
    [
        ("athena:GetQueryExecution", "arn:aws:athena:us-east-1:123456789012:workgroup/primary"),
        ("athena:GetQueryResults", "arn:aws:athena:us-east-1:123456789012:workgroup/primary"),
        ("athena:ListQueryExecutions", "*"),
    ],
)
def test_what_is_asked_about_a_query_needs_the_permission_for_its_workgroup_as_on_aws(action, asked):
    assert asked_of_aws(action, "*") == (action, asked)


@pytest.mark.parametrize(
    ("caller", "sender"),
    [
        ("arn:aws:iam::000000000000:user/signalbox/dev_alice", "AIDA1"),
        ("arn:aws:iam::000000000000:user/dev_alice", "AIDA1"),
        ("arn:aws:iam::000000000000:user/unknown", "000000000000"),
        ("arn:aws:iam::000000000000:root", "000000000000"),
        ("arn:aws:sts::000000000000:assumed-role/dev_control/control", "AROA1:control"),
        ("arn:aws:sts::000000000000:assumed-role/dev_alice/session", "000000000000"),
    ],
    ids=["with a path", "without one", "nobody", "root", "a session of a role", "a role of a user's name"],
)
def test_a_message_tells_who_sent_it_as_on_aws(caller, sender):
    def build(now, given):
        return {"SenderId": "000000000000", "SentTimestamp": now, **given}

    users, roles = {"dev_alice": "AIDA1"}, {"dev_control": "AROA1"}
    built = with_senders(build, lambda: caller, user_id=users.get, role_id=roles.get)

    assert built("1", {"AWSTraceHeader": "x"}) == {"SenderId": sender, "SentTimestamp": "1", "AWSTraceHeader": "x"}


def test_a_function_is_told_which_user_sent_a_message():
    batch = [{"id": "1", "sys": {"SenderId": "AIDA1"}}, {"id": "2"}]
    event = {"Records": [{"messageId": one["id"], "attributes": {"SenderId": "000000000000"}} for one in batch]}
    run = passing_senders(lambda _mapping, _function, event, _batch, queue: (event, queue))

    told, queue = run("mapping", "function", event, batch, "queue")

    assert [record["attributes"]["SenderId"] for record in told["Records"]] == ["AIDA1", "000000000000"]
    assert queue == "queue"


def test_a_queue_is_kept_up_no_more_often_than_said_and_each_for_itself():
    moments, kept_up = iter([0.0, 0.4, 0.5, 1.0, 1.9]), list[str]()
    keep_up = at_most_every(1.0, lambda queue: kept_up.append(queue["name"]), now=lambda: next(moments))
    orders, memes = {"name": "orders"}, {"name": "memes"}

    for queue in (orders, orders, memes, orders, orders):
        keep_up(queue)

    assert kept_up == ["orders", "memes", "orders"]


def test_fields_are_added_to_messages_that_lack_some_alone():
    completed = list[dict[str, object]]()
    ensure = unless_whole(completed.append)
    from_topic = {"body": "as SNS hands it over", "md5_body": "0"}

    for message in ({"md5_body": "0", "sys": {}, "seq": None}, from_topic):
        ensure(message)

    assert completed == [from_topic]


def test_what_is_only_put_by_needs_no_thread_of_its_own():
    handled = asyncio.run(on_the_spot(lambda *request: (request, threading.current_thread()))("POST", "/"))

    assert handled == (("POST", "/"), threading.main_thread())


@pytest.fixture
def unpack(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def unpacked(name, files):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
        folder = tmp_path / name
        folder.mkdir()
        with UnpackedOnce(tmp_path / f"{name}.zip") as archive:
            archive.extractall(folder)
        return folder

    return unpacked


def test_the_same_code_is_unpacked_once_and_other_code_by_itself(unpack, tmp_path):
    first = unpack("first", {"lambdas/offer.py": "1"})
    second = unpack("second", {"lambdas/offer.py": "1"})
    third = unpack("third", {"lambdas/offer.py": "2"})

    assert (first / "lambdas" / "offer.py").read_text() == "1"
    assert first.samefile(second)
    assert (third / "lambdas" / "offer.py").read_text() == "2"
    assert len(list((tmp_path / "unpacked").iterdir())) == 2


def test_an_archive_that_another_unpacks_meanwhile_is_unpacked_once(unpack, tmp_path, monkeypatch):
    unpack("first", {"lambdas/offer.py": "1"})
    monkeypatch.setattr(Path, "exists", lambda path: False)

    assert (unpack("second", {"lambdas/offer.py": "1"}) / "lambdas" / "offer.py").read_text() == "1"
    assert len(list((tmp_path / "unpacked").iterdir())) == 1
