"""Looking for what is to be announced, once or again and again."""

import os
from dataclasses import replace

import pytest

from signalbox.clients.sarracenia.tree_walk import PathNotFound, Watch, found_at, walk
from signalbox.sarracenia.formats.posts import Found, Kind

FILE = Found("/d/f", Kind.FILE, mode=0o100644, size_bytes=1)
DIRECTORY = Found("/d", Kind.DIRECTORY, mode=0o40755)


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


def test_a_tree_is_walked_from_the_root_on_without_following_links(tree):
    """sr3 3.3.1 follows links to directories, without end where they lead back, and leaves out dangling ones."""
    found = list(walk([str(tree / "d")], recursive=True))

    assert names(found, tree) == ["d", "d/dangling", "d/e", "d/link", "d/z", "d/e/f"]
    assert [one.target for one in found if one.kind == Kind.LINK] == ["nowhere", "e"]


def test_a_directory_alone_is_announced_without_what_it_holds(tree):
    assert names(walk([str(tree / "d")], recursive=False), tree) == ["d"]


def test_the_base_directory_itself_is_not_announced(tree):
    base = str(tree / "d")

    assert names(walk([base], recursive=True, except_for=base), tree)[0] == "d/dangling"


def test_paths_may_be_relative(tree, monkeypatch):
    monkeypatch.chdir(tree / "d")

    assert names(walk(["./e/../z"], recursive=False), tree) == ["d/z"]


@pytest.mark.parametrize("name", ["nothing", "d/pipe"])
def test_what_cannot_be_announced_is_named(name, tree):
    with pytest.raises(PathNotFound, match=f"{name}' is no file, directory or link"):
        list(walk([str(tree / name)], recursive=True))


def test_a_path_may_be_missing_while_it_is_watched(tree):
    assert list(walk([str(tree / "nothing")], recursive=True, may_be_missing=True)) == []


def test_a_directory_that_is_gone_before_it_is_looked_into_holds_nothing(tree):
    walking = walk([str(tree / "d" / "e")], recursive=True)
    next(walking)
    (tree / "d" / "e" / "f").unlink()
    (tree / "d" / "e").rmdir()

    assert list(walking) == []


def test_a_directory_that_cannot_be_looked_into_is_named(tree, monkeypatch):
    def forbidden(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", forbidden)

    with pytest.raises(PathNotFound, match=r"cannot look into .*d': Permission denied"):
        list(walk([str(tree / "d")], recursive=True))


def test_what_there_is_at_first_is_no_change():
    watch = Watch()
    watch.start([DIRECTORY, FILE])

    assert watch.changes([DIRECTORY, FILE]) == []


def test_a_file_is_a_change_once_two_looks_saw_the_same():
    watch = Watch()

    assert watch.changes([FILE]) == []
    assert watch.changes([replace(FILE, size_bytes=2)]) == []
    assert watch.changes([replace(FILE, size_bytes=2)]) == [replace(FILE, size_bytes=2)]
    assert watch.changes([replace(FILE, size_bytes=2)]) == []


def test_directories_and_links_are_changes_at_once():
    link = Found("/d/link", Kind.LINK, target="f")

    assert Watch().changes([DIRECTORY, link]) == [DIRECTORY, link]


def test_that_a_file_was_read_is_no_change(tmp_path):
    (tmp_path / "f").write_text("x")
    found = found_at(str(tmp_path / "f"))
    watch = Watch()
    watch.start([found])

    assert watch.changes([replace(found, accessed_at=None)]) == []


def test_what_is_gone_is_told_from_the_leaves_to_the_root():
    watch = Watch()
    watch.start([DIRECTORY, FILE])

    assert watch.changes([]) == [Found("/d/f", Kind.REMOVED), Found("/d", Kind.REMOVED_DIRECTORY)]
    assert watch.changes([]) == []


def test_a_file_that_became_a_directory_is_gone_first():
    watch = Watch()
    watch.start([Found("/d", Kind.FILE, size_bytes=1)])

    assert watch.changes([DIRECTORY]) == [Found("/d", Kind.REMOVED), DIRECTORY]
