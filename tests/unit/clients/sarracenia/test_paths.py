"""Destinations of files: below the download directory, whatever an announcement contains."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.clients.sarracenia.paths import UnsafePath, destination_of, link_target


def test_the_destination_of_a_file_is_its_path_below_the_directory(tmp_path):
    assert destination_of("a//./b/f", tmp_path) == tmp_path / "a" / "b" / "f"


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../f", "a/../../f", "a/..", "", ".", "./", "a\0b", "\ud800", ".signalbox", ".signalbox/x"],
)
def test_a_path_outside_of_the_directory_is_refused(path, tmp_path):
    with pytest.raises(UnsafePath):
        destination_of(path, tmp_path)


def test_an_existing_link_out_of_the_directory_is_refused(tmp_path):
    (tmp_path / "out").symlink_to("/")
    (tmp_path / "in").symlink_to(".")

    with pytest.raises(UnsafePath, match="'out/f' leads out"):
        destination_of("out/f", tmp_path)
    assert destination_of("in/f", tmp_path) == tmp_path / "in" / "f"


@pytest.mark.parametrize("target", ["g", "../g", "b/../../g"])
def test_a_link_target_below_the_directory_is_accepted(target, tmp_path):
    assert link_target(target, tmp_path / "a" / "link", tmp_path) == target


@pytest.mark.parametrize("target", ["", "/etc", "../../g", "a\0b", "\ud800"])
def test_a_link_target_outside_of_the_directory_is_refused(target, tmp_path):
    with pytest.raises(UnsafePath, match="leads out"):
        link_target(target, tmp_path / "a" / "link", tmp_path)


@given(st.text(st.sampled_from("ab./~$\\ é"), max_size=12))
def test_every_destination_is_below_the_directory(tmp_path_factory, path):
    root = tmp_path_factory.getbasetemp()
    try:
        destination = destination_of(path, root)
    except UnsafePath:
        return

    assert os.path.normpath(destination).startswith(f"{root}/")
