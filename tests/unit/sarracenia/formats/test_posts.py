"""Messages that announce a tree: equal to those of sr3_post 3.3.1.

The cases contain the messages that the real sr3_post published; cases/generate.py regenerates them.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from signalbox.clients.sarracenia.checksums import FileNotReadable, read_contents
from signalbox.clients.sarracenia.tree_walk import walk
from signalbox.sarracenia.formats.identity import Identity, IdentityMethod
from signalbox.sarracenia.formats.payloads import Format
from signalbox.sarracenia.formats.posts import (
    FileEntry,
    FileKind,
    InvalidPostSettings,
    NotBelowBaseDirectory,
    PostSettings,
)
from signalbox.sarracenia.rights.names import ExchangeName
from tests.unit.sarracenia.cases.generate import names_of, plant, without_time

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.json"))
SETTINGS = PostSettings(ExchangeName("xs_alice"), "https://e/", base_directory="/data")


def test_the_recorded_cases_are_found():
    """Without cases pytest would skip the next test and succeed."""
    assert CASES


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_tree_is_announced_as_sr3_announces_it(case, tmp_path):
    plant(tmp_path)
    expected = read_case(case, tmp_path)
    recursive = "recursive off" not in expected["options"]

    messages = posted(tmp_path, settings_of(expected["posting"]), recursive=recursive)

    assert in_order(map(comparable, messages)) == in_order(map(comparable, expected["messages"]))


def read_case(case: Path, root: Path) -> dict:
    text = case.read_text()
    for path, name in names_of(root).items():
        text = text.replace(name, path)
    return json.loads(text)


def settings_of(case: dict) -> PostSettings:
    method = IdentityMethod.parse(case.pop("method", "sha512"))
    return PostSettings(ExchangeName("xs_alice"), method=method, form=Format(case.pop("form", "v03")), **case)


def posted(root: Path, settings: PostSettings, *, recursive: bool) -> list[dict]:
    found = walk([str(root / "data")], recursive=recursive, except_for=settings.base_directory)
    messages = []
    for one in found:
        for announcement in settings.announcements(one, read_contents(one, settings), now=NOW, random=42):
            document = settings.message(announcement).as_document()
            if settings.form == Format.V03:
                document["body"] = json.loads(document["body"])
            messages.append(without_time(document))
    return messages


def comparable(message: dict) -> dict:
    """Remove random values, and fields that sr3 writes wrongly or omits."""
    message.pop("content_type", None)
    message["headers"].pop("link", None)  # sr3 reads it, but does not write it
    if message["headers"].get("parts", "1").startswith("i"):
        del message["headers"]["sum"]
    if isinstance(message["body"], dict):
        mask_digests(message["body"])
    return message


def mask_digests(body: dict) -> None:
    # sr3 reads to the end of its buffer, beyond the end of a block, so its digests are not those of the blocks.
    blocks = body.get("blocks", {"manifest": {}})
    if blocks["manifest"] or body.get("identity", {}).get("method") == "random":
        body["identity"]["value"] = "…"
    for block in blocks["manifest"].values():
        block["identity"] = "…"


def in_order(messages) -> list[str]:
    return sorted(json.dumps(message, sort_keys=True) for message in messages)


def test_announced_paths_are_relative_to_the_base_directory_with_or_without_a_slash():
    """sr3 3.3.1 announces the whole path of a directory when the base directory ends in a slash."""
    assert [replace(SETTINGS, base_directory=base).path_of("/data/a") for base in ("/data", "/data/")] == ["a", "a"]


@pytest.mark.parametrize("path", ["/data2/a", "/data", "/"])
def test_a_path_that_is_not_below_the_base_directory_is_refused(path):
    """sr3 3.3.1 makes `2/a` of the first."""
    with pytest.raises(NotBelowBaseDirectory, match="not below the base directory '/data'"):
        SETTINGS.path_of(path)


def test_a_configured_topic_prefix_applies_to_v02_too():
    """sr3 3.3.1 posts v02 below v02.post whatever is configured."""
    settings = replace(SETTINGS, form=Format.V02, topic_prefix="x.y")

    assert post(settings, FileEntry("/data/a/b/f", FileKind.FILE, size_bytes=1)).routing_key == "x.y.a.b"


@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        (FileKind.REMOVED, {"remove": ""}),
        (FileKind.REMOVED_DIRECTORY, {"remove": "", "directory": ""}),
        (FileKind.LINK, {"link": ""}),
    ],
)
def test_removed_paths_are_announced_without_further_fields(kind, operation):
    body = json.loads(post(SETTINGS, FileEntry("/data/a/f", kind)).body)

    assert body == {"pubTime": "20261121T200000", "relPath": "a/f", "baseUrl": "https://e/", "fileOp": operation}


def post(settings: PostSettings, entry: FileEntry):
    return settings.message(next(settings.announcements(entry, now=NOW, random=42)))


def test_contradictory_settings_are_refused_with_all_problems():
    with pytest.raises(InvalidPostSettings) as refused:
        replace(
            SETTINGS,
            base_url="//[e",
            form=Format.V02,
            method=IdentityMethod("none"),
            block_bytes=10,
            content_limit_bytes=10,
        )

    assert [line.split(":")[0] for line in str(refused.value).splitlines()] == [
        "base URL '//[e'",
        "identity 'none'",
        "v02 has no embedded content, in sr3 either",
    ]


def test_blocks_have_the_digests_of_their_own_bytes(tmp_path):
    """sr3 3.3.1 reads beyond the end of a block."""
    (tmp_path / "f").write_bytes(b"abcabc" + b"ab")
    settings = replace(SETTINGS, base_directory=str(tmp_path), block_bytes=3, method=IdentityMethod("md5"))

    (entry,) = walk([str(tmp_path / "f")], recursive=False)

    digests = [block.identity for block in read_contents(entry, settings).blocks]
    assert digests[0] == digests[1] == "kAFQmDzST7DWlj99KOF/cg=="  # RFC 1321, A.5
    assert len(digests) == 3


def test_an_arbitrary_identity_is_announced_without_reading_the_file(tmp_path):
    settings = replace(SETTINGS, method=IdentityMethod.parse("arbitrary,v1"))

    contents = read_contents(FileEntry(str(tmp_path / "not there"), FileKind.FILE, size_bytes=1), settings)

    assert contents.identity == Identity("arbitrary", "v1")


@pytest.mark.parametrize("size_bytes", [2, 4])
def test_a_file_that_changes_while_it_is_read_is_not_announced(size_bytes, tmp_path):
    (tmp_path / "f").write_bytes(b"abc")

    with pytest.raises(FileNotReadable, match="while it was read"):
        read_contents(FileEntry(str(tmp_path / "f"), FileKind.FILE, size_bytes=size_bytes), SETTINGS)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(FileNotReadable, match="nothing': No such file"):
        read_contents(FileEntry(str(tmp_path / "nothing"), FileKind.FILE, size_bytes=1), SETTINGS)
