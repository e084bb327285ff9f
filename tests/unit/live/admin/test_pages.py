"""How the live page is served."""

import pytest

from signalbox.live.admin.pages import File, config, file_name, headers, health


@pytest.mark.parametrize(
    ("path", "name"),
    [("/live/", "index.html"), ("/prefix/live/log.css", "log.css"), ("/live", None), ("/elsewhere", None)],
)
def test_a_path_names_a_file(path, name):
    assert file_name(path) == name


def test_a_kind_of_file_that_the_page_has_not_is_none():
    assert File.of("notes.md", "text") is None


def test_the_tag_of_a_file_changes_with_its_content():
    one, other = File.of("a.js", "1"), File.of("a.js", "2")

    assert one
    assert other
    assert one.etag != other.etag
    assert one.is_known("*")
    assert not one.is_known("")


def test_a_connection_to_the_pages_own_host_is_allowed_by_its_name_for_itself():
    assert "connect-src 'self';" in headers("/live-ws")["Content-Security-Policy"]


def test_a_connection_is_allowed_to_the_server_of_the_address_alone():
    policy = headers("ws://127.0.0.1:4566/live-ws")["Content-Security-Policy"]

    assert "connect-src 'self' ws://127.0.0.1:4566;" in policy


def test_the_page_is_told_where_to_connect_and_as_whom_in_a_stable_order():
    assert config("wss://stage/live", {"b", "a"}) == '{"websocket_url": "wss://stage/live", "realms": ["a", "b"]}'


def test_the_stage_is_well_or_its_troubles_are_named():
    assert health({}) == '{"health": "OK"}'
    assert health({"inbox": "gone"}) == '{"health": "ERROR", "error": {"inbox": "gone"}}'
