"""The stand-in of Arvados' log endpoint gives the answers that were measured with Arvados 3.2.1's own programs."""

import pytest
import urllib3

from tests.fakes.arvados.http_server import AT_ONCE, QUEUED, serving
from tests.fakes.arvados.log_endpoint import Answer, ContainerLog, LogEndpoint, State

REQUEST, CONTAINER, TOKEN = "zzzzz-xvhdp-000000000000001", "zzzzz-dz642-000000000000001", "v2/zzzzz-gj3su-x/secret"
LOG = f"/arvados/v1/container_requests/{REQUEST}/log"
FOLDER, FILE = f"{LOG}/{CONTAINER}/", f"{LOG}/{CONTAINER}/stdout.txt"
TEXT = bytes(range(256)) + b"x" * 203  # 459 bytes

# For each state: PROPFIND of the log, GET and PROPFIND of the container's folder, GET and HEAD of a file.
MEASURED = {
    State.QUEUED: (207, 404, 404, 404, 404),
    State.LOCKED: (207, 404, 404, 404, 404),
    State.RUNNING: (207, 405, 207, 200, 405),
    State.GONE: (207, 503, 503, 503, 503),
    State.COMPLETE: (207, 200, 207, 200, 200),
    State.CANCELLED: (207, 200, 207, 200, 200),
    State.TRASHED: (404, 404, 404, 404, 404),
}
ASKED = (("PROPFIND", LOG), ("GET", FOLDER), ("PROPFIND", FOLDER), ("GET", FILE), ("HEAD", FILE))


def endpoint(state: State, content: bytes = TEXT) -> LogEndpoint:
    one = LogEndpoint({TOKEN: None, "other": frozenset()})
    log = one.add(ContainerLog(REQUEST, CONTAINER, State.RUNNING))
    log.files = {"stdout.txt": content}
    log.save()
    log.state = state
    return one


def ask(one: LogEndpoint, method: str, path: str, **headers: str) -> Answer:
    return one.answer(method, path, {"authorization": f"Bearer {TOKEN}", **headers})


@pytest.mark.parametrize("state", State)
def test_each_state_has_the_measured_statuses(state):
    one = endpoint(state)

    assert tuple(ask(one, method, path).status for method, path in ASKED) == MEASURED[state]


@pytest.mark.parametrize("state", [State.RUNNING, State.COMPLETE])
@pytest.mark.parametrize(
    ("asked", "status", "content_range", "body"),
    [
        ("bytes=0-9", 206, "bytes 0-9/459", TEXT[:10]),
        ("bytes=450-", 206, "bytes 450-458/459", TEXT[450:]),
        ("bytes=450-900", 206, "bytes 450-458/459", TEXT[450:]),
        ("bytes=459-", 416, "bytes */459", b"invalid range: failed to overlap\n"),
        ("bytes=900-", 416, "bytes */459", b"invalid range: failed to overlap\n"),
        ("bytes=-0", 206, "bytes 459-458/459", b""),
        ("bytes=x", 416, None, b"invalid range\n"),
    ],
)
def test_ranges_have_the_measured_answers(state, asked, status, content_range, body):
    answer = ask(endpoint(state), "GET", FILE, range=asked)

    assert (answer.status, answer.headers.get("Content-Range"), answer.body) == (status, content_range, body)


def test_an_empty_file_has_the_measured_answers():
    one = endpoint(State.RUNNING, b"")

    assert ask(one, "GET", FILE, range="bytes=0-").status == 200
    assert ask(one, "GET", FILE, range="bytes=-0").headers["Content-Range"] == "bytes 0--1/0"


def test_refusals_have_the_measured_answers():
    one = endpoint(State.RUNNING)

    assert one.answer("GET", FILE, {}).headers["WWW-Authenticate"] == 'Basic realm="collections"'
    assert (one.answer("GET", FILE, {}).status, one.answer("GET", FILE, {}).body) == (401, b"")
    assert one.answer("GET", FILE, {"authorization": "Bearer other"}).status == 404
    assert ask(one, "POST", FILE).status == 405
    assert ask(one, "GET", f"/arvados/v1/containers/{CONTAINER}/log").status == 404
    assert one.answer("OPTIONS", FILE, {}).headers["Access-Control-Max-Age"] == "86400"


def test_the_etag_changes_once_more_at_the_end_though_the_bytes_are_equal():
    one = endpoint(State.RUNNING)
    live = ask(one, "GET", FILE).headers["ETag"]
    assert ask(one, "GET", FILE, **{"if-none-match": live}).status == 304

    one.logs[CONTAINER].end()

    assert ask(one, "GET", FILE, **{"if-none-match": live}).status == 200
    assert ask(one, "GET", FILE).body == TEXT


def test_a_lost_node_cuts_the_file_back_to_the_last_save():
    one = endpoint(State.RUNNING)
    log = one.logs[CONTAINER]
    log.write("stdout.txt", b"more")
    log.lose_node()
    assert ask(one, "GET", FILE).status == 503

    log.state = State.CANCELLED

    assert ask(one, "GET", FILE, range="bytes=463-").headers["Content-Range"] == "bytes */459"


def test_a_tunnel_writes_a_line_for_each_request_that_reaches_crunch_run():
    one = endpoint(State.RUNNING)
    one.logs[CONTAINER].has_tunnel = True

    ask(one, "PROPFIND", FOLDER)
    ask(one, "GET", FILE)

    assert one.logs[CONTAINER].files["crunch-run.txt"].count(b" tunnel connection ") == 2


def test_without_keep_web_saved_logs_get_502_and_live_ones_do_not():
    one = endpoint(State.RUNNING)
    one.has_keep_web = False
    assert ask(one, "GET", FILE).status == 200

    one.logs[CONTAINER].end()

    assert ask(one, "GET", FILE).status == 502


def test_more_than_144_requests_at_once_get_503_with_an_empty_body():
    one = endpoint(State.RUNNING)
    with serving(one, seconds=0.01) as server:
        server.waiting = AT_ONCE + QUEUED
        headers = {"authorization": f"Bearer {TOKEN}"}
        with urllib3.PoolManager(retries=False) as pool:
            refused = pool.request("GET", server.url + FILE, headers=headers)
            server.waiting = 0
            answered = pool.request("GET", server.url + FILE, headers={**headers, "Range": "bytes=0-9"})

    assert (refused.status, refused.data) == (503, b"")
    assert (answered.status, answered.data) == (206, TEXT[:10])
    assert (one.requests["GET"], one.bytes_sent["GET"], server.refused) == (1, 10, 1)
