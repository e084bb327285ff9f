"""The keys of issuers over real HTTP: rotation, caching, bounded fetches and answers that are refused."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import pytest

from signalbox.aws.live import issuers, json_documents
from signalbox.aws.live.issuers import FAILED_SECONDS, FRESH_SECONDS, PAUSE_SECONDS, STALE_SECONDS, IssuerKeys
from signalbox.aws.live.json_documents import JsonDocuments, is_permitted
from tests.fakes.clock import Seconds
from tests.fakes.issuer import DISCOVERY, KEYS, Answer, LoopbackIssuer, public_jwk, running_issuer

GONE = Answer((b"no",), status=503)


@pytest.fixture
def issuer() -> Iterator[LoopbackIssuer]:
    with running_issuer() as running:
        yield running


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


@pytest.fixture
def keys(clock) -> IssuerKeys:
    return IssuerKeys(JsonDocuments(allows_loopback=True), now=clock)


def keys_at(url: str) -> Answer:
    return Answer((f'{{"issuer": "URL", "jwks_uri": "{url}"}}'.encode(),))


def ids(found: object) -> list[str]:
    assert found is not None
    return [key["kid"] for key in found]


def test_keys_are_fetched_once(keys, issuer, clock) -> None:
    for _ in range(3):
        assert ids(keys.find(issuer.url, "RS256")) == ["RS256", "ES256", "EdDSA"]
    clock.now += FRESH_SECONDS - 1
    assert keys.find(issuer.url, "RS256")

    assert issuer.requests == {DISCOVERY: 1, KEYS: 1}


def test_a_rotated_key_is_fetched_when_a_token_names_it(keys, issuer, clock) -> None:
    keys.find(issuer.url, "RS256")
    issuer.keys = [public_jwk("RS256", "new", 1)]
    clock.now += PAUSE_SECONDS

    assert ids(keys.find(issuer.url, "new")) == ["new"]
    assert issuer.requests[KEYS] == 2


def test_a_withdrawn_key_is_forgotten_after_some_minutes(keys, issuer, clock) -> None:
    keys.find(issuer.url, "RS256")
    issuer.keys = []
    clock.now += FRESH_SECONDS

    assert keys.find(issuer.url, "RS256") == ()


def test_a_storm_of_unknown_keys_causes_one_fetch_in_some_seconds(keys, issuer, clock) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: keys.find(issuer.url, f"unknown-{number}"), range(1_000)))

    assert all(ids(one) == ["RS256", "ES256", "EdDSA"] for one in found)
    assert issuer.requests[KEYS] == 1
    clock.now += PAUSE_SECONDS
    keys.find(issuer.url, "unknown")
    keys.find(issuer.url, "unknown")
    assert issuer.requests[KEYS] == 2


def test_old_keys_are_used_while_the_issuer_does_not_answer(keys, issuer, clock) -> None:
    keys.find(issuer.url, "RS256")
    issuer.answers[KEYS] = GONE
    clock.now += STALE_SECONDS - 1

    assert ids(keys.find(issuer.url, "RS256"))[0] == "RS256"
    clock.now += 1
    assert keys.find(issuer.url, "RS256") is None
    del issuer.answers[KEYS]
    clock.now += FAILED_SECONDS
    assert keys.find(issuer.url, "RS256")


def test_known_keys_do_not_wait_for_a_fetch_of_another_thread(keys, issuer, clock) -> None:
    keys.find(issuer.url, "RS256")
    clock.now += FRESH_SECONDS
    entry = keys._entries[issuer.url]

    with entry.exclusive:
        assert ids(keys.find(issuer.url, "RS256"))[0] == "RS256"

    assert issuer.requests[KEYS] == 1


def test_an_issuer_that_did_not_answer_is_asked_again_after_a_pause(keys, issuer, clock) -> None:
    issuer.answers[DISCOVERY] = GONE
    assert keys.find(issuer.url, "RS256") is None
    assert keys.find(issuer.url, "RS256") is None
    assert issuer.requests == {DISCOVERY: 1}
    del issuer.answers[DISCOVERY]
    clock.now += FAILED_SECONDS

    assert keys.find(issuer.url, "RS256")


def test_a_pause_after_a_failure_begins_at_its_end(issuer, clock) -> None:
    passing = iter([0, FAILED_SECONDS, 0])

    def slow() -> float:
        clock.now += next(passing)
        return 1.0

    issuer.answers[DISCOVERY] = GONE
    keys = IssuerKeys(JsonDocuments(allows_loopback=True, left=slow), now=clock)

    assert [keys.find(issuer.url, "RS256") for _ in range(2)] == [None, None]

    assert issuer.requests == {DISCOVERY: 1}


def test_an_issuer_is_not_asked_without_time_for_its_answer(issuer, clock) -> None:
    keys = IssuerKeys(JsonDocuments(allows_loopback=True, left=lambda: 0.0), now=clock)

    assert keys.find(issuer.url, "RS256") is None

    assert issuer.requests == {}


def test_an_issuer_whose_identifier_ends_with_a_slash_has_the_same_discovery_document(keys, issuer) -> None:
    issuer.url += "/"
    issuer.answers[DISCOVERY] = Answer(
        (f'{{"issuer": "{issuer.url}", "jwks_uri": "{issuer.url[:-1]}{KEYS}"}}'.encode(),)
    )

    assert keys.find(issuer.url, "RS256")


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        pytest.param(DISCOVERY, Answer((b"{}",)), id="another-issuer-s-document"),
        pytest.param(DISCOVERY, Answer((b'{"issuer": "URL", "jwks_uri": "file:///etc/passwd"}',)), id="a-file"),
        pytest.param(DISCOVERY, Answer((b'{"issuer": "URL", "jwks_uri": "http://10.0.0.1/"}',)), id="plain-http"),
        pytest.param(DISCOVERY, Answer((b'{"issuer": "URL"}',)), id="without-an-address-of-keys"),
        pytest.param(DISCOVERY, keys_at("https://[::1"), id="half-an-address"),
        pytest.param(DISCOVERY, keys_at("https://id.example:99999/"), id="a-port-that-does-not-exist"),
        pytest.param(DISCOVERY, keys_at("https://" + "a" * 64 + ".example/"), id="a-name-that-does-not-exist"),
        pytest.param(DISCOVERY, keys_at("URL/ke ys"), id="white-space"),
        pytest.param(DISCOVERY, keys_at("URL/kéys"), id="not-ascii"),
        pytest.param(DISCOVERY, keys_at("SECURE"), id="not-encrypted-as-announced"),
        pytest.param(DISCOVERY, Answer((b"[]",)), id="not-an-object"),
        pytest.param(DISCOVERY, Answer((b"not json",)), id="not-json"),
        pytest.param(DISCOVERY, Answer((b"[" * 100_000,)), id="deeply-nested"),
        pytest.param(KEYS, Answer((b"{}",)), id="without-keys"),
        pytest.param(KEYS, Answer((b"",), 302, {"location": "/other"}), id="a-redirect"),
        pytest.param(KEYS, GONE, id="an-error"),
        pytest.param(KEYS, Answer((b'{"keys": [', b" " * 300_000)), id="too-long"),
        pytest.param(KEYS, Answer((b'{"keys"',), 200, {"content-length": "100"}), id="cut-off"),
    ],
)
def test_an_answer_that_is_not_in_order_gives_no_keys(keys, issuer, path, answer) -> None:
    secure = issuer.url.replace("http", "https").encode()
    pieces = tuple(piece.replace(b"URL", issuer.url.encode()).replace(b"SECURE", secure) for piece in answer.pieces)
    issuer.answers[path] = Answer(pieces, answer.status, answer.headers)

    assert keys.find(issuer.url, "RS256") is None
    assert "/other" not in issuer.requests


def test_an_answer_that_comes_drop_by_drop_is_cut_off(keys, issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_documents, "REQUEST_SECONDS", 0.2)
    issuer.answers[KEYS] = Answer((b" ",) * 100, pause=0.05)

    assert keys.find(issuer.url, "RS256") is None


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_loopback_is_only_asked_on_the_local_stage(issuer, scheme) -> None:
    assert IssuerKeys().find(issuer.url.replace("http", scheme), "RS256") is None
    assert not issuer.requests


@pytest.mark.parametrize(
    ("address", "permitted"),
    [
        ("203.0.113.9", True),
        ("10.0.0.8", True),
        ("fd00::8", True),
        ("::ffff:10.0.0.8", True),
        ("127.0.0.1", False),
        ("127.8.8.8", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("169.254.169.254", False),
        ("fe80::1", False),
        ("0.0.0.0", False),  # noqa: S104 - refused
        ("224.0.0.1", False),
    ],
)
def test_an_issuer_is_in_a_network_and_neither_this_machine_nor_on_its_link(address, permitted) -> None:
    assert is_permitted(address) is permitted


def test_headers_that_come_drop_by_drop_are_cut_off(keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_documents, "REQUEST_SECONDS", 0.2)
    over = Event()

    def drip() -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not over.wait(0.05):
                connection.sendall(b"x-more: 1\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as threads:
        threads.submit(drip)
        found = keys.find(f"http://127.0.0.1:{server.getsockname()[1]}", "RS256")
        over.set()

    assert found is None


def test_a_name_server_that_does_not_answer_is_cut_off(keys, caplog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_documents, "REQUEST_SECONDS", 0.2)
    over = Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [over.wait(5)][1:])

    assert keys.find("http://localhost:9", "RS256") is None
    over.set()
    assert "TimeoutError" in caplog.text


def test_an_issuer_whose_name_is_unknown_gives_no_keys(keys, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", unknown)

    assert keys.find("http://localhost:9", "RS256") is None


def test_the_number_of_known_issuers_is_bounded(keys, issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuers, "MAXIMUM_ISSUERS", 1)
    keys.find(issuer.url, "RS256")
    keys.find("http://127.0.0.1:9", "RS256")

    assert list(keys._entries) == ["http://127.0.0.1:9"]


def test_only_objects_of_a_key_set_are_keys(keys, issuer) -> None:
    issuer.keys = [1, "x", public_jwk("RS256", "RS256")]

    assert ids(keys.find(issuer.url, "RS256")) == ["RS256"]
