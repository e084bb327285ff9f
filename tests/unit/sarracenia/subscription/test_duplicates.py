"""Duplicate detection by the rules of sr3 3.3.1 (flowcb/nodupe)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.sarracenia.formats.announcement import Announcement, FileOperation
from signalbox.sarracenia.formats.blocks import Block, Blocks
from signalbox.sarracenia.formats.identity import Identity
from signalbox.sarracenia.subscription.duplicates import Basis, duplicate_key, is_duplicate

MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
LATER = MOMENT + timedelta(seconds=1)
FILE = Announcement(MOMENT, "https://e/", "a/f", size_bytes=1, identity=Identity("md5", "AA=="), modified_at=MOMENT)
OTHER = Identity("md5", "BA==")
COD = Identity("cod", "sha512")
BASES = set(Basis)


@pytest.mark.parametrize(
    ("changes", "bases"),
    [
        ({"published_at": LATER, "modified_at": LATER, "base_url": "https://f/", "size_bytes": 2}, BASES),
        ({"identity": OTHER}, {Basis.NAME_ONLY, Basis.PATH_ONLY}),
        ({"path": "b/f"}, {Basis.DATA, Basis.NAME, Basis.NAME_ONLY}),
        ({"path": "b/f", "identity": OTHER}, {Basis.NAME_ONLY}),
        ({"path": "a/g"}, {Basis.DATA}),
        ({"path": "/a/f"}, BASES - {Basis.PATH_ONLY}),
    ],
    ids=["other times", "other content", "other directory", "other content and directory", "other name", "slash"],
)
def test_each_basis_compares_its_properties(changes, bases):
    other = replace(FILE, **changes)

    assert {basis for basis in Basis if duplicate_key(FILE, basis) == duplicate_key(other, basis)} == bases


@pytest.mark.parametrize("unread", [{"identity": None}, {"identity": COD}, {"operation": FileOperation(removed=True)}])
@pytest.mark.parametrize(
    ("changes", "is_same"),
    [({}, True), ({"size_bytes": 2}, False), ({"modified_at": LATER}, False), ({"size_bytes": None}, False)],
)
def test_without_a_checksum_size_and_time_are_compared(unread, changes, is_same):
    one, other = replace(FILE, **unread), replace(FILE, **unread, published_at=LATER, **changes)

    assert (duplicate_key(one) == duplicate_key(other)) == is_same


def test_without_a_modification_time_the_time_of_publication_is_compared():
    one = replace(FILE, identity=None, modified_at=None)

    assert duplicate_key(one) == duplicate_key(replace(one))
    assert duplicate_key(one) != duplicate_key(replace(one, published_at=LATER))


def test_links_are_compared_by_target_and_directories_by_path():
    link, directory = FileOperation(link="t"), FileOperation(directory=True)

    assert duplicate_key(replace(FILE, operation=link)) == duplicate_key(replace(FILE, operation=link, size_bytes=2))
    assert duplicate_key(replace(FILE, operation=directory)) == duplicate_key(
        replace(FILE, operation=directory, modified_at=LATER)
    )


def test_blocks_with_equal_bytes_are_not_duplicates():
    """sr3 3.3.1 drops the second block, so the file is never complete."""
    manifest = {0: Block(1, "AA=="), 1: Block(1, "AA==")}
    first, second = (replace(FILE, blocks=Blocks("inplace", 1, 2, number, manifest)) for number in (0, 1))

    assert duplicate_key(first) != duplicate_key(second)


def test_keys_of_different_properties_differ():
    assert duplicate_key(replace(FILE, path='f", "')) != duplicate_key(replace(FILE, path="f"))


def test_each_hit_extends_the_time_of_an_entry():
    """Measured on sr3 3.3.1 with nodupe_ttl 10: kept at 0, dropped at 9 and 18, kept at 29."""
    seen_at, dropped = None, []
    for seconds in (0, 9, 18, 29):
        now = MOMENT + timedelta(seconds=seconds)
        dropped.append(is_duplicate(seen_at, now=now, ttl=timedelta(seconds=10)))
        seen_at = now

    assert dropped == [False, True, True, False]
