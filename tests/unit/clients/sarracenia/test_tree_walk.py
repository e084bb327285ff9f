"""Walks of trees, and changes between walks."""

import os
from dataclasses import replace

import pytest

from signalbox.clients.sarracenia.tree_walk import PathNotFound, TreeWatch, entry_at, walk
from signalbox.sarracenia.formats.posts import FileEntry, FileKind

FILE = FileEntry("/d/f", FileKind.FILE, mode=0o100644, size_bytes=1)
DIRECTORY = FileEntry("/d", FileKind.DIRECTORY, mode=0o40755)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "f").write_text("x")
    (tmp_path / "d" / "z").write_text("x")
    (tmp_path / "d" / "link").symlink_to("e")
    (tmp_path / "d" / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "d" / "pipe")
    return tmp_path


def names(found, root) -> list[str]:
    return [os.path.relpath(one.path, root) for one in found]


def test_a_tree_is_walked_from_its_root_without_following_links(tree):
    """sr3 3.3.1 follows links to directories, endlessly when they form a cycle, and omits dangling links."""
    found = list(walk([str(tree / "d")], recursive=True))

    assert names(found, tree) == ["d", "d/dangling", "d/e", "d/link", "d/z", "d/e/f"]
    assert [one.target for one in found if one.kind == FileKind.LINK] == ["nowhere", "e"]


def test_without_recursion_a_directory_is_announced_without_its_entries(tree):
    assert names(walk([str(tree / "d")], recursive=False), tree) == ["d"]


def test_the_base_directory_itself_is_not_announced(tree):
    base = str(tree / "d")

    assert names(walk([base], recursive=True, except_for=base), tree)[0] == "d/dangling"


def test_paths_may_be_relative(tree, monkeypatch):
    monkeypatch.chdir(tree / "d")

    assert names(walk(["./e/../z"], recursive=False), tree) == ["d/z"]


@pytest.mark.parametrize("name", ["nothing", "d/pipe"])
def test_a_missing_path_or_pipe_is_refused(name, tree):
    with pytest.raises(PathNotFound, match=f"{name}' is not a file, directory or link"):
        list(walk([str(tree / name)], recursive=True))


def test_a_path_may_be_missing_while_it_is_watched(tree):
    assert list(walk([str(tree / "nothing")], recursive=True, may_be_missing=True)) == []


def test_a_directory_removed_during_the_walk_is_empty(tree):
    walking = walk([str(tree / "d" / "e")], recursive=True)
    next(walking)
    (tree / "d" / "e" / "f").unlink()
    (tree / "d" / "e").rmdir()

    assert list(walking) == []


def test_an_unreadable_directory_is_refused(tree, monkeypatch):
    def forbidden(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", forbidden)

    with pytest.raises(PathNotFound, match=r"cannot list .*d': Permission denied"):
        list(walk([str(tree / "d")], recursive=True))


def test_entries_of_the_first_walk_are_not_changes():
    watch = TreeWatch()
    watch.start([DIRECTORY, FILE])

    assert watch.changes([DIRECTORY, FILE]) == []


def test_a_file_is_a_change_after_two_equal_walks():
    watch = TreeWatch()

    assert watch.changes([FILE]) == []
    assert watch.changes([replace(FILE, size_bytes=2)]) == []
    assert watch.changes([replace(FILE, size_bytes=2)]) == [replace(FILE, size_bytes=2)]
    assert watch.changes([replace(FILE, size_bytes=2)]) == []


def test_directories_and_links_are_changes_at_once():
    link = FileEntry("/d/link", FileKind.LINK, target="f")

    assert TreeWatch().changes([DIRECTORY, link]) == [DIRECTORY, link]


def test_reading_a_file_is_not_a_change(tmp_path):
    (tmp_path / "f").write_text("x")
    found = entry_at(str(tmp_path / "f"))
    watch = TreeWatch()
    watch.start([found])

    assert watch.changes([replace(found, accessed_at=None)]) == []


def test_removed_entries_are_reported_from_the_leaves_to_the_root():
    watch = TreeWatch()
    watch.start([DIRECTORY, FILE])

    assert watch.changes([]) == [FileEntry("/d/f", FileKind.REMOVED), FileEntry("/d", FileKind.REMOVED_DIRECTORY)]
    assert watch.changes([]) == []


def test_a_file_replaced_by_a_directory_is_reported_as_removed_first():
    watch = TreeWatch()
    watch.start([FileEntry("/d", FileKind.FILE, size_bytes=1)])

    assert watch.changes([DIRECTORY]) == [FileEntry("/d", FileKind.REMOVED), DIRECTORY]
