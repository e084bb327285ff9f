"""The HTTP responses of the live page."""

import json

import pytest

from signalbox.live.admin.pages import File, config, file_name, headers, health


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
