"""Accept and reject lines: sr3 3.3.1, flow/__init__.py, filter."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from signalbox.errors import RejectedError
from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.subscription.filters import Accepted, FileFilter, InvalidFilter, Rejected, full_url

MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
BASE = "https://e/"


@dataclass
class Compiled:
    pattern: re.Pattern

    def matches(self, text):
        return self.pattern.match(text) is not None


def compiled(text: str) -> Compiled:
    try:
        return Compiled(re.compile(text))
    except re.error as error:
        raise RejectedError(f"{text!r}: {error}") from error


def verdict(path: str, *lines: tuple[str, str], accept_unmatched: bool = True):
    file_filter = FileFilter.parse(lines, compiled, accept_unmatched=accept_unmatched)
    return file_filter.verdict(Announcement(MOMENT, BASE, path))


@pytest.mark.parametrize(
    ("lines", "path", "is_accepted"),
    [
        ([("reject", ".*gif"), ("accept", ".*")], "a/x.gif", False),
        ([("accept", ".*"), ("reject", ".*gif")], "a/x.gif", True),
        ([("accept", "x.gif"), ("reject", ".*")], "a/x.gif", False),
        ([("accept", ".*x.gif"), ("reject", ".*")], "a/x.gif.tmp", True),
        ([("accept", ".*x.gif$"), ("reject", ".*")], "a/x.gif.tmp", False),
        ([("accept", "https://e/a/x.gif"), ("reject", ".*")], "/a/x.gif", True),
        ([("accept", ".*GIF"), ("reject", ".*")], "a/x.gif", False),
        ([], "a/x.gif", True),
    ],
    ids=[
        "reject first",
        "a later reject is shadowed",
        "matched from the start of the URL",
        "no end anchor",
        "end anchor",
        "doubled slash",
        "case",
        "no lines",
    ],
)
def test_the_first_matching_line_decides(lines, path, is_accepted):
    assert isinstance(verdict(path, *lines), Accepted if is_accepted else Rejected)


def test_unmatched_announcements_can_be_rejected():
    assert verdict("a", ("accept", "x"), accept_unmatched=False) == Rejected("no line matches")


def test_a_rejection_names_its_line():
    assert verdict("a.gif", ("accept", "x"), ("reject", ".*gif")) == Rejected("line 2: reject .*gif")


@pytest.mark.parametrize(("path", "directory"), [("0", None), ("a.gif", "/d1"), ("a.txt", "/d2"), ("other", "/d2")])
def test_each_accept_line_uses_the_directory_above_it(path, directory):
    lines = [("accept", ".*0"), ("directory", "/d1"), ("accept", ".*gif"), ("directory", "/d2"), ("accept", ".*txt")]

    assert verdict(path, *lines) == Accepted(directory)


def test_every_problem_is_reported_with_its_line():
    """sr3 3.3.1 stores None for an invalid expression, and fails at the first message."""
    with pytest.raises(InvalidFilter) as refused:
        FileFilter.parse([("accept", "["), ("accept", "ok"), ("refuse", "x")], compiled)

    first, second = str(refused.value).splitlines()
    assert first == "line 1, accept: '[': unterminated character set at position 0"
    assert second.startswith("line 3, refuse: 'refuse' is not a valid FilterKeyword")


@pytest.mark.parametrize(
    ("base_url", "path"), [("https://e/", "a"), ("https://e", "a"), ("https://e", "/a"), ("https://e/", "/a")]
)
def test_a_url_has_one_slash_between_base_and_path(base_url, path):
    assert full_url(Announcement(MOMENT, base_url, path)) == "https://e/a"
