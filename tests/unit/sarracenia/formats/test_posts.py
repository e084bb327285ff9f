"""Announcing files: the same tree, announced by sr3_post 3.3.1 and by us.

The cases are what the real sr3_post published; cases/generate.py makes them anew.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from signalbox.clients.sarracenia.checksums import FileNotReadable, contents_of
from signalbox.clients.sarracenia.tree_walk import walk
from signalbox.sarracenia.formats.identity import Identity, IdentityMethod
from signalbox.sarracenia.formats.payloads import Format
from signalbox.sarracenia.formats.posts import Found, InvalidPosting, Kind, NotBelowBaseDirectory, Posting
from signalbox.sarracenia.rights.names import ExchangeName
from tests.unit.sarracenia.cases.generate import names_of, plant, without_time

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
CASES = sorted(Path(__file__).with_name("cases").glob("*.json"))
POSTING = Posting(ExchangeName("xs_alice"), "https://e/", base_directory="/data")


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_tree_is_announced_as_sr3_announces_it(case, tmp_path):
    plant(tmp_path)
    told = read_case(case, tmp_path)
    recursive = "recursive off" not in told["options"]

    messages = posted(tmp_path, posting_of(told["posting"]), recursive=recursive)

    assert in_order(map(comparable, messages)) == in_order(map(comparable, told["messages"]))


def read_case(case: Path, root: Path) -> dict:
    text = case.read_text()
    for path, name in names_of(root).items():
        text = text.replace(name, path)
    return json.loads(text)


def posting_of(told: dict) -> Posting:
    method = IdentityMethod.parse(told.pop("method", "sha512"))
    return Posting(ExchangeName("xs_alice"), method=method, form=Format(told.pop("form", "v03")), **told)


def posted(root: Path, posting: Posting, *, recursive: bool) -> list[dict]:
    found = walk([str(root / "data")], recursive=recursive, except_for=posting.base_directory)
    messages = []
    for one in found:
        for told in posting.announcements(one, contents_of(one, posting), now=NOW, random=42):
            document = posting.post(told).as_document()
            if posting.form == Format.V03:
                document["body"] = json.loads(document["body"])
            messages.append(without_time(document))
    return messages


def comparable(message: dict) -> dict:
    """Take out what chance says, and what sr3 says wrongly or leaves out."""
    message.pop("content_type", None)
    message["headers"].pop("link", None)  # sr3 reads it, but does not write it
    if message["headers"].get("parts", "1").startswith("i"):
        del message["headers"]["sum"]
    if isinstance(message["body"], dict):
        mask_digests(message["body"])
    return message


def mask_digests(body: dict) -> None:
    # Of a block, sr3 reads on behind its end, as far as its buffer goes: its digests are not those of the blocks.
    blocks = body.get("blocks", {"manifest": {}})
    if blocks["manifest"] or body.get("identity", {}).get("method") == "random":
        body["identity"]["value"] = "…"
    for block in blocks["manifest"].values():
        block["identity"] = "…"


def in_order(messages) -> list[str]:
    return sorted(json.dumps(message, sort_keys=True) for message in messages)


def test_a_path_is_told_below_the_base_directory_whether_that_ends_in_a_slash_or_not():
    """sr3 3.3.1 tells the whole path of a directory that stands in a base directory with a slash."""
    assert [replace(POSTING, base_directory=base).path_of("/data/a") for base in ("/data", "/data/")] == ["a", "a"]


@pytest.mark.parametrize("path", ["/data2/a", "/data", "/"])
def test_a_path_that_is_not_below_the_base_directory_is_refused(path):
    """sr3 3.3.1 makes `2/a` of the first."""
    with pytest.raises(NotBelowBaseDirectory, match="not below the base directory '/data'"):
        POSTING.path_of(path)


def test_a_prefix_that_somebody_chose_holds_for_v02_too():
    """sr3 3.3.1 posts v02 below v02.post whatever is configured."""
    posting = replace(POSTING, form=Format.V02, topic_prefix="x.y")

    assert post(posting, Found("/data/a/b/f", Kind.FILE, size_bytes=1)).routing_key == "x.y.a.b"


@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        (Kind.REMOVED, {"remove": ""}),
        (Kind.REMOVED_DIRECTORY, {"remove": "", "directory": ""}),
        (Kind.LINK, {"link": ""}),
    ],
)
def test_what_is_gone_has_nothing_but_its_path(kind, operation):
    body = json.loads(post(POSTING, Found("/data/a/f", kind)).body)

    assert body == {"pubTime": "20261121T200000", "relPath": "a/f", "baseUrl": "https://e/", "fileOp": operation}


def post(posting: Posting, found: Found):
    return posting.post(next(posting.announcements(found, now=NOW, random=42)))


def test_every_problem_of_how_files_are_announced_is_told():
    with pytest.raises(InvalidPosting) as refused:
        replace(
            POSTING,
            base_url="//[e",
            form=Format.V02,
            method=IdentityMethod("none"),
            block_bytes=10,
            content_limit_bytes=10,
        )

    assert [line.split(":")[0] for line in str(refused.value).splitlines()] == [
        "base URL '//[e'",
        "identity 'none'",
        "no content travels in v02; sr3 does not send any either",
    ]


def test_blocks_have_the_digests_of_their_own_bytes(tmp_path):
    """sr3 3.3.1 reads on behind a block's end."""
    (tmp_path / "f").write_bytes(b"abcabc" + b"ab")
    posting = replace(POSTING, base_directory=str(tmp_path), block_bytes=3, method=IdentityMethod("md5"))

    (found,) = walk([str(tmp_path / "f")], recursive=False)

    digests = [block.identity for block in contents_of(found, posting).blocks]
    assert digests[0] == digests[1] == "kAFQmDzST7DWlj99KOF/cg=="  # RFC 1321, A.5
    assert len(digests) == 3


def test_an_arbitrary_identity_is_told_without_reading(tmp_path):
    posting = replace(POSTING, method=IdentityMethod.parse("arbitrary,v1"))

    contents = contents_of(Found(str(tmp_path / "not there"), Kind.FILE, size_bytes=1), posting)

    assert contents.identity == Identity("arbitrary", "v1")


@pytest.mark.parametrize("size_bytes", [2, 4])
def test_a_file_that_changes_while_it_is_read_is_not_announced(size_bytes, tmp_path):
    (tmp_path / "f").write_bytes(b"abc")

    with pytest.raises(FileNotReadable, match="while it was read"):
        contents_of(Found(str(tmp_path / "f"), Kind.FILE, size_bytes=size_bytes), POSTING)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(FileNotReadable, match="nothing': No such file"):
        contents_of(Found(str(tmp_path / "nothing"), Kind.FILE, size_bytes=1), POSTING)
