"""The ids of announced files, which history has instead of their paths."""

import pytest

from signalbox.exchange.messages.headers import announced_file, file_id

PATH = "data/a b/é.txt"


@pytest.mark.parametrize(
    ("key", "body"),
    [
        ("v03.data", '{"pubTime": "x", "relPath": "data/a b/\\u00e9.txt", "size": 1}'),
        ("any.topic", '{"relPath":"/data/a b/é.txt"}'),
        ("v02.post.data", "20261120 https://example.org/ data/a%20b/é.txt"),
    ],
    ids=["v03", "another topic", "v02"],
)
def test_a_message_that_announces_a_file_has_the_id_of_its_path(key, body) -> None:
    assert announced_file(key, body) == file_id(PATH)


@pytest.mark.parametrize(
    ("key", "body"),
    [
        ("v03.data", "no announcement"),
        ("v03.data", '{"relPath": 1}'),
        ("v03.data", '{"relPath": "\n"}'),
        ("v02.post", "20261120 https://example.org/"),
    ],
    ids=["text", "a number", "a control character", "v02 without a path"],
)
def test_another_message_has_none(key, body) -> None:
    assert announced_file(key, body) is None


def test_the_id_does_not_contain_the_path() -> None:
    assert len(file_id(PATH)) == 32
    assert int(file_id(PATH), 16) >= 0
    assert file_id(PATH) != file_id(PATH + "2")
