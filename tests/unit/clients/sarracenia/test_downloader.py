"""Applying announcements to a directory."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import pytest

from signalbox.clients.sarracenia.block_files import BlockAssembly
from signalbox.clients.sarracenia.downloader import Downloader, DownloadOutcome, FileOperationFailed, delete_stale_files
from signalbox.clients.sarracenia.paths import STAGING_DIRECTORY, UnsafePath
from signalbox.clients.sarracenia.sources import NotFetched, UnknownSource
from signalbox.clients.sarracenia.verification import NotVerified
from signalbox.sarracenia.formats.announcement import Announcement, FileOperation
from signalbox.sarracenia.formats.blocks import Block, Blocks, file_in_blocks
from signalbox.sarracenia.formats.content import Content
from signalbox.sarracenia.formats.identity import Identity, checksum
from tests.unit.clients.sarracenia.web import serving

MOMENT = datetime(2026, 11, 21, 20, 0, 0, 123_456, UTC)
OCTETS = b"hello"
FILE = Announcement(
    published_at=MOMENT,
    base_url="http://unknown.invalid/",
    path="a/f",
    size_bytes=len(OCTETS),
    identity=checksum("sha512", [OCTETS]),
    modified_at=MOMENT,
    mode="6640",
)


@pytest.fixture
def source(tmp_path) -> Path:
    folder = tmp_path / "source"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "f").write_bytes(OCTETS)
    return folder


@pytest.fixture
def target(tmp_path) -> Path:
    return tmp_path / "target"


@pytest.fixture
def file(source) -> Announcement:
    return replace(FILE, base_url=f"file:{source}/")


def left(target: Path) -> list[str]:
    return [path.name for path in (target / STAGING_DIRECTORY).glob("*")]


def test_a_file_is_downloaded_from_a_web_server_with_its_mode_and_time(target):
    with serving({"a/f": OCTETS}) as web:
        done = Downloader(target).apply(replace(FILE, base_url=web.url))

    status = (target / "a" / "f").stat()
    assert (done, (target / "a" / "f").read_bytes()) == (DownloadOutcome.DOWNLOADED, OCTETS)
    assert oct(status.st_mode & 0o7777) == "0o640"  # an announcement cannot set the setuid bit
    assert abs(status.st_mtime - MOMENT.timestamp()) < 0.00001
    assert left(target) == []


def test_an_unchanged_file_is_not_fetched_again(file, target):
    Downloader(target).apply(file)

    assert Downloader(target).apply(replace(file, base_url="http://unknown.invalid/")) == DownloadOutcome.UNCHANGED


@pytest.mark.parametrize(
    "changes", [{"size_bytes": 4}, {"size_bytes": 6}, {"identity": checksum("sha512", [b"jello"])}, {"path": "a/g"}]
)
def test_a_file_that_differs_from_its_announcement_is_not_stored(changes, file, source, target):
    (source / "a" / "g").write_bytes(b"jello")

    with pytest.raises(NotVerified, match=r"bytes|checksum"):
        Downloader(target).apply(replace(file, **changes))

    assert not (target / "a").exists()
    assert left(target) == []


@pytest.mark.parametrize("identity", [None, Identity("cod", "sha512"), Identity("random", "0042")])
def test_without_a_checksum_the_size_is_verified(identity, file, target):
    downloader = Downloader(target)

    assert downloader.apply(replace(file, identity=identity)) == DownloadOutcome.DOWNLOADED
    assert downloader.apply(replace(file, identity=identity, size_bytes=None, mode=None)) == DownloadOutcome.DOWNLOADED
    with pytest.raises(NotVerified):
        downloader.apply(replace(file, identity=identity, size_bytes=4))


def test_a_later_version_replaces_an_earlier_one(file, target):
    downloader = Downloader(target)
    downloader.apply(file)
    later = Content("utf-8", "hello again")

    done = downloader.apply(replace(file, content=later, size_bytes=11, identity=checksum("md5", [later.octets])))

    assert (done, (target / "a" / "f").read_text()) == (DownloadOutcome.DOWNLOADED, "hello again")


def test_an_embedded_content_is_verified_and_not_fetched(target):
    downloader = Downloader(target)

    assert downloader.apply(replace(FILE, content=Content("utf-8", "hello"))) == DownloadOutcome.DOWNLOADED
    with pytest.raises(NotVerified):
        downloader.apply(replace(FILE, path="b", content=Content("utf-8", "jello")))
    assert (target / "a" / "f").read_bytes() == OCTETS


def test_a_failed_download_leaves_no_file(target):
    with pytest.raises(NotFetched):
        Downloader(target, {"http": failing}).apply(FILE)

    assert left(target) == []


def failing(_url, _part):
    yield b"hel"
    raise NotFetched("gone")


@pytest.mark.parametrize("path", ["../f", "/etc/f", "a/../../f"])
def test_nothing_is_written_outside_of_the_directory(path, file, target):
    with pytest.raises(UnsafePath):
        Downloader(target).apply(replace(file, path=path, content=Content("utf-8", "hello")))


def test_a_link_created_during_the_download_is_not_followed(tmp_path, target):
    def swapping(_url, _part):
        (target / "a").symlink_to(tmp_path)
        yield OCTETS

    with pytest.raises(UnsafePath):
        Downloader(target, {"http": swapping}).apply(FILE)

    assert not (tmp_path / "f").exists()


def test_an_unknown_source_is_refused(target):
    with pytest.raises(UnknownSource):
        Downloader(target).apply(replace(FILE, base_url="sftp://e/"))


def test_a_file_is_stored_in_the_directory_of_its_filter_line(tmp_path, file, target):
    downloader = Downloader(target)

    downloader.apply(file, directory="below")
    downloader.apply(file, directory=str(tmp_path / "next"))

    assert (target / "below" / "a" / "f").exists()
    assert (tmp_path / "next" / "a" / "f").exists()


def test_a_file_replaces_a_link_without_following_it(tmp_path, file, target):
    (target / "a").mkdir(parents=True)
    (tmp_path / "elsewhere").write_text("kept")
    (target / "a" / "f").symlink_to(tmp_path / "elsewhere")

    assert Downloader(target).apply(file) == DownloadOutcome.DOWNLOADED
    assert (tmp_path / "elsewhere").read_text() == "kept"


def operate(target: Path, path: str, **operation) -> DownloadOutcome:
    change = Announcement(MOMENT, "http://unknown.invalid/", path, operation=FileOperation(**operation), mode="700")
    return Downloader(target).apply(change)


def test_a_directory_is_created_and_removed(target):
    assert operate(target, "d/e", directory=True) == DownloadOutcome.DIRECTORY
    assert operate(target, "d/e", directory=True) == DownloadOutcome.DIRECTORY
    assert operate(target, "d/e", removed=True, directory=True) == DownloadOutcome.REMOVED
    assert operate(target, "d/e", removed=True, directory=True) == DownloadOutcome.REMOVED
    assert not (target / "d" / "e").exists()


def test_a_directory_stays_accessible_to_its_owner(target):
    announcement = Announcement(MOMENT, "http://e/", "d", operation=FileOperation(directory=True), mode="000")

    Downloader(target).apply(announcement)

    assert oct((target / "d").stat().st_mode & 0o777) == "0o700"


def test_the_target_directory_of_a_link_keeps_its_mode(tmp_path, target):
    target.mkdir()
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    (target / "d").symlink_to(tmp_path / "elsewhere")

    assert operate(target, "d", directory=True) == DownloadOutcome.DIRECTORY
    assert oct((tmp_path / "elsewhere").stat().st_mode & 0o777) == "0o755"


def test_a_directory_that_is_not_empty_is_not_removed(file, target):
    Downloader(target).apply(file)

    with pytest.raises(FileOperationFailed, match=r"'a' in .*not empty"):
        operate(target, "a", removed=True)


def test_a_file_is_removed(file, target):
    Downloader(target).apply(file)

    assert operate(target, "a/f", removed=True) == DownloadOutcome.REMOVED
    assert not (target / "a" / "f").exists()


def test_a_link_is_created_if_its_target_is_below_the_directory(target):
    assert operate(target, "a/link", link="f") == DownloadOutcome.LINKED
    assert operate(target, "a/link", link="g") == DownloadOutcome.LINKED
    assert str((target / "a" / "link").readlink()) == "g"
    with pytest.raises(UnsafePath):
        operate(target, "a/link", link="/etc/passwd")


@pytest.mark.parametrize("identity", [FILE.identity, None])
def test_an_existing_file_is_renamed(identity, file, target):
    Downloader(target).apply(file)
    renamed = replace(FILE, path="b/g", identity=identity, operation=FileOperation(renamed_from="a/f"))

    assert Downloader(target).apply(renamed) == DownloadOutcome.RENAMED
    assert (target / "b" / "g").read_bytes() == OCTETS
    assert not (target / "a" / "f").exists()


@pytest.mark.parametrize("former", ["a/other", "/home/alice/f", "a/changed"])
def test_a_renamed_file_is_fetched_if_the_old_one_is_missing_or_differs(former, file, source, target):
    (target / "a").mkdir(parents=True)
    (target / "a" / "changed").write_text("other")
    (source / "g").write_bytes(OCTETS)

    renamed = replace(file, path="g", operation=FileOperation(renamed_from=former))

    assert Downloader(target).apply(renamed) == DownloadOutcome.DOWNLOADED


BIG = b"abcabcab"
BLOCKS = [Block(len(part), checksum("md5", [part]).value) for part in (b"abc", b"abc", b"ab")]


def in_blocks(base_url: str, *, is_v02: bool = False) -> list[Announcement]:
    announcements = [
        replace(
            FILE,
            base_url=base_url,
            size_bytes=blocks.manifest[blocks.number].size_bytes,
            identity=Identity("md5", blocks.manifest[blocks.number].identity),
            blocks=blocks,
        )
        for blocks in file_in_blocks(BLOCKS)
    ]
    if not is_v02:
        return announcements
    return [
        replace(one, blocks=replace(one.blocks, manifest={one.blocks.number: BLOCKS[one.blocks.number]}))
        for one in announcements
    ]


@pytest.mark.parametrize("is_v02", [False, True])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_blocks_are_assembled_in_any_order(order, is_v02, target):
    with serving({"a/f": BIG}) as web:
        announcements = in_blocks(web.url, is_v02=is_v02)
        done = [Downloader(target).apply(announcements[number]) for number in order]

    assert done == [DownloadOutcome.BLOCK, DownloadOutcome.BLOCK, DownloadOutcome.DOWNLOADED]
    assert (target / "a" / "f").read_bytes() == BIG
    assert left(target) == []


def test_a_repeated_block_changes_nothing(target):
    with serving({"a/f": BIG}) as web:
        announcements = in_blocks(web.url)
        done = [Downloader(target).apply(announcements[number]) for number in (0, 0, 1, 2, 1)]

    assert done == [
        DownloadOutcome.BLOCK,
        DownloadOutcome.BLOCK,
        DownloadOutcome.BLOCK,
        DownloadOutcome.DOWNLOADED,
        DownloadOutcome.UNCHANGED,
    ]
    assert left(target) == []


def test_blocks_of_different_versions_are_not_mixed(target):
    with serving({"a/f": BIG}) as web:
        former = in_blocks(web.url)
        later = [replace(one, modified_at=MOMENT + timedelta(seconds=1)) for one in former]
        done = [Downloader(target).apply(one) for one in (former[0], former[1], later[2])]

    assert done == [DownloadOutcome.BLOCK] * 3


def test_a_huge_block_count_leaves_no_file(file, target):
    Downloader(target).apply(file)
    count = 10**30
    blocks = Blocks("inplace", 1, count, count - 1, {})

    with pytest.raises(NotFetched):
        Downloader(target).apply(replace(file, size_bytes=1, blocks=blocks))
    first = replace(file, size_bytes=len(OCTETS), blocks=replace(blocks, size_bytes=len(OCTETS), number=0))
    assert Downloader(target).apply(first) == DownloadOutcome.UNCHANGED


def test_without_a_modification_time_a_block_is_always_fetched(target):
    with serving({"a/f": BIG}) as web:
        announcements = [replace(one, modified_at=None) for one in in_blocks(web.url)]
        done = [Downloader(target).apply(announcements[number]) for number in (0, 1, 2, 0)]

    assert done == [DownloadOutcome.BLOCK, DownloadOutcome.BLOCK, DownloadOutcome.DOWNLOADED, DownloadOutcome.BLOCK]


def test_a_block_that_differs_from_its_announcement_is_not_stored(target):
    with serving({"a/f": b"abcxxxab"}) as web:
        announcements = in_blocks(web.url)
        Downloader(target).apply(announcements[0])
        with pytest.raises(NotVerified):
            Downloader(target).apply(announcements[1])
        assert Downloader(target).apply(announcements[2]) == DownloadOutcome.BLOCK


def test_blocks_assembled_by_another_instance_are_missing(tmp_path):
    (announcement, *_) = in_blocks("http://e/")
    assembly = BlockAssembly(announcement, announcement.blocks, tmp_path)

    with pytest.raises(FileNotFoundError):
        assembly.write(tmp_path / "whole")


def test_a_block_without_a_manifest_entry_has_the_common_size():
    blocks = Blocks("inplace", 10, 3, 1, {})
    assembly = BlockAssembly(replace(FILE, size_bytes=None, blocks=blocks), blocks, Path())

    assert (assembly.byte_range.start, assembly.byte_range.size_bytes) == (10, 10)


def test_incomplete_files_older_than_seven_days_are_deleted(target):
    own = target / STAGING_DIRECTORY
    own.mkdir(parents=True)
    for name, days in (("old", 8), ("new", 6)):
        (own / name).touch()
        moment = (MOMENT - timedelta(days=days)).timestamp()
        os.utime(own / name, (moment, moment))

    assert delete_stale_files(target, now=MOMENT) == 1
    assert left(target) == ["new"]
    assert delete_stale_files(target / "nothing", now=MOMENT) == 0
