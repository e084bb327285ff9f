"""Doing to a directory what announcements tell."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import pytest

from signalbox.clients.sarracenia.block_files import Assembly
from signalbox.clients.sarracenia.downloader import Done, Downloader, NotDone, swept
from signalbox.clients.sarracenia.paths import OWN_DIRECTORY, UnsafePath
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
    base_url="http://nobody.invalid/",
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
    return [path.name for path in (target / OWN_DIRECTORY).glob("*")]


def test_a_file_is_downloaded_from_a_web_server_with_its_mode_and_time(target):
    with serving({"a/f": OCTETS}) as web:
        done = Downloader(target).carry_out(replace(FILE, base_url=web.url))

    status = (target / "a" / "f").stat()
    assert (done, (target / "a" / "f").read_bytes()) == (Done.DOWNLOADED, OCTETS)
    assert oct(status.st_mode & 0o7777) == "0o640"  # whoever announces a file gives nobody its owner's rights
    assert abs(status.st_mtime - MOMENT.timestamp()) < 0.00001
    assert left(target) == []


def test_a_file_that_is_there_already_is_not_fetched_again(file, target):
    Downloader(target).carry_out(file)

    assert Downloader(target).carry_out(replace(file, base_url="http://nobody.invalid/")) == Done.UNCHANGED


@pytest.mark.parametrize(
    "changes", [{"size_bytes": 4}, {"size_bytes": 6}, {"identity": checksum("sha512", [b"jello"])}, {"path": "a/g"}]
)
def test_what_is_not_as_announced_does_not_appear(changes, file, source, target):
    (source / "a" / "g").write_bytes(b"jello")

    with pytest.raises(NotVerified, match=r"bytes|checksum"):
        Downloader(target).carry_out(replace(file, **changes))

    assert not (target / "a").exists()
    assert left(target) == []


@pytest.mark.parametrize("identity", [None, Identity("cod", "sha512"), Identity("random", "0042")])
def test_without_a_checksum_the_size_is_verified(identity, file, target):
    downloader = Downloader(target)

    assert downloader.carry_out(replace(file, identity=identity)) == Done.DOWNLOADED
    assert downloader.carry_out(replace(file, identity=identity, size_bytes=None, mode=None)) == Done.DOWNLOADED
    with pytest.raises(NotVerified):
        downloader.carry_out(replace(file, identity=identity, size_bytes=4))


def test_a_later_version_takes_the_place_of_a_former_one(file, target):
    downloader = Downloader(target)
    downloader.carry_out(file)
    later = Content("utf-8", "hello again")

    done = downloader.carry_out(replace(file, content=later, size_bytes=11, identity=checksum("md5", [later.octets])))

    assert (done, (target / "a" / "f").read_text()) == (Done.DOWNLOADED, "hello again")


def test_a_content_in_the_message_is_verified_and_not_fetched(target):
    downloader = Downloader(target)

    assert downloader.carry_out(replace(FILE, content=Content("utf-8", "hello"))) == Done.DOWNLOADED
    with pytest.raises(NotVerified):
        downloader.carry_out(replace(FILE, path="b", content=Content("utf-8", "jello")))
    assert (target / "a" / "f").read_bytes() == OCTETS


def test_what_cannot_be_fetched_leaves_nothing(target):
    with pytest.raises(NotFetched):
        Downloader(target, {"http": failing}).carry_out(FILE)

    assert left(target) == []


def failing(_url, _part):
    yield b"hel"
    raise NotFetched("gone")


@pytest.mark.parametrize("path", ["../f", "/etc/f", "a/../../f"])
def test_nothing_is_written_outside_of_the_directory(path, file, target):
    with pytest.raises(UnsafePath):
        Downloader(target).carry_out(replace(file, path=path, content=Content("utf-8", "hello")))


def test_a_link_that_appears_meanwhile_leads_nowhere_else(tmp_path, target):
    def swapping(_url, _part):
        (target / "a").symlink_to(tmp_path)
        yield OCTETS

    with pytest.raises(UnsafePath):
        Downloader(target, {"http": swapping}).carry_out(FILE)

    assert not (tmp_path / "f").exists()


def test_an_unknown_source_is_refused(target):
    with pytest.raises(UnknownSource):
        Downloader(target).carry_out(replace(FILE, base_url="sftp://e/"))


def test_a_file_goes_into_the_directory_that_its_line_says(tmp_path, file, target):
    downloader = Downloader(target)

    downloader.carry_out(file, directory="below")
    downloader.carry_out(file, directory=str(tmp_path / "beside"))

    assert (target / "below" / "a" / "f").exists()
    assert (tmp_path / "beside" / "a" / "f").exists()


def test_a_file_takes_the_place_of_a_link(tmp_path, file, target):
    (target / "a").mkdir(parents=True)
    (tmp_path / "elsewhere").write_text("kept")
    (target / "a" / "f").symlink_to(tmp_path / "elsewhere")

    assert Downloader(target).carry_out(file) == Done.DOWNLOADED
    assert (tmp_path / "elsewhere").read_text() == "kept"


def operate(target: Path, path: str, **operation) -> Done:
    told = Announcement(MOMENT, "http://nobody.invalid/", path, operation=FileOperation(**operation), mode="700")
    return Downloader(target).carry_out(told)


def test_a_directory_is_made_and_removed(target):
    assert operate(target, "d/e", directory=True) == Done.DIRECTORY
    assert operate(target, "d/e", directory=True) == Done.DIRECTORY
    assert operate(target, "d/e", removed=True, directory=True) == Done.REMOVED
    assert operate(target, "d/e", removed=True, directory=True) == Done.REMOVED
    assert not (target / "d" / "e").exists()


def test_a_directory_stays_usable_whatever_its_mode(target):
    told = Announcement(MOMENT, "http://e/", "d", operation=FileOperation(directory=True), mode="000")

    Downloader(target).carry_out(told)

    assert oct((target / "d").stat().st_mode & 0o777) == "0o700"


def test_a_directory_that_a_link_leads_to_keeps_its_mode(tmp_path, target):
    target.mkdir()
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    (target / "d").symlink_to(tmp_path / "elsewhere")

    assert operate(target, "d", directory=True) == Done.DIRECTORY
    assert oct((tmp_path / "elsewhere").stat().st_mode & 0o777) == "0o755"


def test_a_directory_that_holds_something_is_not_removed(file, target):
    Downloader(target).carry_out(file)

    with pytest.raises(NotDone, match=r"'a' in .*not empty"):
        operate(target, "a", removed=True)


def test_a_file_is_removed(file, target):
    Downloader(target).carry_out(file)

    assert operate(target, "a/f", removed=True) == Done.REMOVED
    assert not (target / "a" / "f").exists()


def test_a_link_is_made_where_it_leads_to_what_is_below_the_directory(target):
    assert operate(target, "a/link", link="f") == Done.LINKED
    assert operate(target, "a/link", link="g") == Done.LINKED
    assert str((target / "a" / "link").readlink()) == "g"
    with pytest.raises(UnsafePath):
        operate(target, "a/link", link="/etc/passwd")


@pytest.mark.parametrize("identity", [FILE.identity, None])
def test_a_file_is_renamed_where_it_is_there(identity, file, target):
    Downloader(target).carry_out(file)
    renamed = replace(FILE, path="b/g", identity=identity, operation=FileOperation(renamed_from="a/f"))

    assert Downloader(target).carry_out(renamed) == Done.RENAMED
    assert (target / "b" / "g").read_bytes() == OCTETS
    assert not (target / "a" / "f").exists()


@pytest.mark.parametrize("former", ["a/other", "/home/alice/f", "a/changed"])
def test_a_renamed_file_is_fetched_where_the_former_one_is_not_there(former, file, source, target):
    (target / "a").mkdir(parents=True)
    (target / "a" / "changed").write_text("other")
    (source / "g").write_bytes(OCTETS)

    renamed = replace(file, path="g", operation=FileOperation(renamed_from=former))

    assert Downloader(target).carry_out(renamed) == Done.DOWNLOADED


BIG = b"abcabcab"
BLOCKS = [Block(len(part), checksum("md5", [part]).value) for part in (b"abc", b"abc", b"ab")]


def in_blocks(base_url: str, *, is_v02: bool = False) -> list[Announcement]:
    told = [
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
        return told
    return [
        replace(one, blocks=replace(one.blocks, manifest={one.blocks.number: BLOCKS[one.blocks.number]}))
        for one in told
    ]


@pytest.mark.parametrize("is_v02", [False, True])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_blocks_are_put_together_in_whatever_order_they_come(order, is_v02, target):
    with serving({"a/f": BIG}) as web:
        told = in_blocks(web.url, is_v02=is_v02)
        done = [Downloader(target).carry_out(told[number]) for number in order]

    assert done == [Done.BLOCK, Done.BLOCK, Done.DOWNLOADED]
    assert (target / "a" / "f").read_bytes() == BIG
    assert left(target) == []


def test_a_block_that_comes_twice_changes_nothing(target):
    with serving({"a/f": BIG}) as web:
        told = in_blocks(web.url)
        done = [Downloader(target).carry_out(told[number]) for number in (0, 0, 1, 2, 1)]

    assert done == [Done.BLOCK, Done.BLOCK, Done.BLOCK, Done.DOWNLOADED, Done.UNCHANGED]
    assert left(target) == []


def test_blocks_of_a_later_version_are_not_mixed_with_those_of_a_former_one(target):
    with serving({"a/f": BIG}) as web:
        former = in_blocks(web.url)
        later = [replace(one, modified_at=MOMENT + timedelta(seconds=1)) for one in former]
        done = [Downloader(target).carry_out(one) for one in (former[0], former[1], later[2])]

    assert done == [Done.BLOCK] * 3


def test_a_block_that_nobody_could_count_to_ends_in_nothing(file, target):
    Downloader(target).carry_out(file)
    count = 10**30
    blocks = Blocks("inplace", 1, count, count - 1, {})

    with pytest.raises(NotFetched):
        Downloader(target).carry_out(replace(file, size_bytes=1, blocks=blocks))
    first = replace(file, size_bytes=len(OCTETS), blocks=replace(blocks, size_bytes=len(OCTETS), number=0))
    assert Downloader(target).carry_out(first) == Done.UNCHANGED


def test_without_a_time_a_block_is_always_fetched(target):
    with serving({"a/f": BIG}) as web:
        told = [replace(one, modified_at=None) for one in in_blocks(web.url)]
        done = [Downloader(target).carry_out(told[number]) for number in (0, 1, 2, 0)]

    assert done == [Done.BLOCK, Done.BLOCK, Done.DOWNLOADED, Done.BLOCK]


def test_a_block_that_is_not_as_announced_is_not_kept(target):
    with serving({"a/f": b"abcxxxab"}) as web:
        told = in_blocks(web.url)
        Downloader(target).carry_out(told[0])
        with pytest.raises(NotVerified):
            Downloader(target).carry_out(told[1])
        assert Downloader(target).carry_out(told[2]) == Done.BLOCK


def test_blocks_that_another_instance_put_together_are_missed(tmp_path):
    (told, *_) = in_blocks("http://e/")
    assembly = Assembly(told, told.blocks, tmp_path)

    with pytest.raises(FileNotFoundError):
        assembly.write(tmp_path / "whole")


def test_a_block_that_no_manifest_tells_of_is_as_large_as_the_others():
    blocks = Blocks("inplace", 10, 3, 1, {})
    assembly = Assembly(replace(FILE, size_bytes=None, blocks=blocks), blocks, Path())

    assert (assembly.part.start, assembly.part.size_bytes) == (10, 10)


def test_what_was_left_behind_long_ago_is_removed(target):
    own = target / OWN_DIRECTORY
    own.mkdir(parents=True)
    for name, days in (("old", 8), ("new", 6)):
        (own / name).touch()
        moment = (MOMENT - timedelta(days=days)).timestamp()
        os.utime(own / name, (moment, moment))

    assert swept(target, now=MOMENT) == 1
    assert left(target) == ["new"]
    assert swept(target / "nothing", now=MOMENT) == 0
