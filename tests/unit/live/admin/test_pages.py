"""The HTTP responses of the live page."""

import json

import pytest

from signalbox.exchange.model.issuers import Issuer
from signalbox.live.admin.pages import File, config, content_policy, file_name, headers, health


@pytest.mark.parametrize(
    ("path", "name"),
    [("/live/", "index.html"), ("/prefix/live/log.css", "log.css"), ("/live", None), ("/elsewhere", None)],
)
def test_a_path_names_a_file(path, name):
    assert file_name(path) == name


def test_an_unknown_file_type_is_not_served():
    assert File.of("notes.md", "text") is None


def test_the_etag_of_a_file_changes_with_its_content():
    one, other = File.of("a.js", "1"), File.of("a.js", "2")

    assert one
    assert other
    assert one.etag != other.etag
    assert one.is_known("*")
    assert not one.is_known("")


def test_the_policy_permits_the_pages_own_host_as_self():
    assert "connect-src 'self';" in headers("/live-ws")["Content-Security-Policy"]


def test_the_policy_permits_connections_to_the_websocket_server_only():
    policy = headers("ws://127.0.0.1:4566/live-ws")["Content-Security-Policy"]

    assert "connect-src 'self' ws://127.0.0.1:4566;" in policy


def test_the_configuration_has_the_websocket_url_and_the_sorted_realms():
    expected = {"websocket_url": "wss://stage/live", "realms": ["a", "b"], "issuers": []}

    assert json.loads(config("wss://stage/live", {"b", "a"})) == expected


def test_the_health_document_is_ok_or_names_the_problems():
    assert health({}) == '{"health": "OK"}'
    assert health({"inbox": "gone"}) == '{"health": "ERROR", "error": {"inbox": "gone"}}'


LAB = Issuer("https://login.example/lab", "urn:lab", label="lab", client_id="page")
POOL = Issuer("https://pool.example", "page", origins=("https://auth.pool.example",))


def test_the_configuration_has_the_issuers_of_realms_with_the_client_to_sign_in_as():
    (lab, pool) = json.loads(config("/live-ws", ["x.fifo"], [("x.fifo", LAB), ("x.fifo", POOL)]))["issuers"]

    assert lab == {
        "realm": "x.fifo",
        "url": "https://login.example/lab",
        "client_id": "page",
        "audience": "urn:lab",
        "label": "lab",
    }
    assert (pool["client_id"], pool["audience"], pool["label"]) == ("page", "page", "")


def test_the_policy_of_a_document_admits_the_origins_of_issuers():
    policy = content_policy("/live-ws", [LAB, POOL])

    origins = "'self' https://auth.pool.example https://login.example https://pool.example"
    assert f"connect-src {origins};" in policy
    assert f"frame-src {origins};" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers("/live-ws", policy)["Content-Security-Policy"] == policy


def test_the_policy_of_many_issuers_fits_into_a_header():
    many = [
        Issuer(f"https://{number:03}.login.example", "page", origins=("https://a.example",)) for number in range(500)
    ]

    policy = content_policy("/live-ws", many)

    assert len(policy) < 10_240
    assert "connect-src 'self' https:;" in policy


def test_only_the_end_of_a_silent_renewal_may_be_framed():
    assert "frame-ancestors 'self'" in content_policy("/live-ws", name="renewed.html")
    assert "frame-src" not in content_policy("/live-ws", name="renewed.html")


def test_the_etag_of_a_document_changes_with_its_policy():
    page, module = File.of("index.html", "1"), File.of("a.js", "1")

    assert page
    assert module
    assert (page.is_document, module.is_document) == (True, False)
    assert page.with_policy("a").etag != page.with_policy("b").etag
    assert page.with_policy("a") == page.with_policy("a")
