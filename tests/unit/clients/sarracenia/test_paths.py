"""Where files may go, whatever an announcement says."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.clients.sarracenia.paths import UnsafePath, link_target, place_of


def test_a_file_goes_where_its_path_says(tmp_path):
    assert place_of("a//./b/f", tmp_path) == tmp_path / "a" / "b" / "f"


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../f", "a/../../f", "a/..", "", ".", "./", "a\0b", "\ud800", ".signalbox", ".signalbox/x"],
)
def test_a_path_that_leads_elsewhere_is_refused(path, tmp_path):
    with pytest.raises(UnsafePath):
        place_of(path, tmp_path)


def test_a_link_that_is_there_already_leads_nowhere_else(tmp_path):
    (tmp_path / "out").symlink_to("/")
    (tmp_path / "in").symlink_to(".")

    with pytest.raises(UnsafePath, match="'out/f' leads out"):
        place_of("out/f", tmp_path)
    assert place_of("in/f", tmp_path) == tmp_path / "in" / "f"


@pytest.mark.parametrize("target", ["g", "../g", "b/../../g"])
def test_a_link_may_lead_to_what_is_below_the_directory(target, tmp_path):
    assert link_target(target, tmp_path / "a" / "link", tmp_path) == target


@pytest.mark.parametrize("target", ["", "/etc", "../../g", "a\0b", "\ud800"])
def test_a_link_that_leads_elsewhere_is_refused(target, tmp_path):
    with pytest.raises(UnsafePath, match="leads out"):
        link_target(target, tmp_path / "a" / "link", tmp_path)


@given(st.text(st.sampled_from("ab./~$\\ é"), max_size=12))
def test_no_path_ever_leads_out_of_the_directory(tmp_path_factory, path):
    root = tmp_path_factory.getbasetemp()
    try:
        place = place_of(path, root)
    except UnsafePath:
        return

    assert os.path.normpath(place).startswith(f"{root}/")
