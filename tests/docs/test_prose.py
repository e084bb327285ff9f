"""Docstrings, comments, messages and pages are plain reference English."""

import pytest

from tests.docs.markdown import ROOT
from tests.docs.prose import findings, findings_in

FOLDERS = sorted(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))
TOP = "*.*"


@pytest.mark.parametrize("folder", [TOP, *FOLDERS])
def test_a_folder_has_no_banned_words(folder):
    # Without the word, `*` matches the files of all folders, which have cases of their own.
    path = f":(glob){TOP}" if folder == TOP else folder

    assert [str(finding) for finding in findings([path], ROOT)] == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('"""Return what deletes strays."""', "Return what"),
        ('def f():\n    """Tell whether\n    it runs."""', "Tell"),
        ('raise ValueError(f"{it!r} is none\\n of ours")', "is none"),
        ("x = 1  # nobody reads it", "nobody"),
        ("# the messages that are\n# there", "that are there"),
    ],
)
def test_a_banned_word_is_found_in_docstrings_messages_and_comments(source, words):
    assert [finding.words for finding in findings_in("a.py", source)] == [words]
