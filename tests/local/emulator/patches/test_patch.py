"""A patch is applied to the MiniStack that it was written for, and to no other."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from signalbox.local.emulator.patches import patches
from signalbox.local.emulator.patches.patch import MiniStackChangedError, Patch, apply_all, digest
from signalbox.local.setup import ROOT

SOURCE = """\
def count(messages):
    return len(messages)

class Queue:
    def size(self):
        return 1
"""
COUNT = "fake_ministack:count"
SIZE = "fake_ministack:Queue.size"
COUNT_SOURCE = "def count(messages):\n    return len(messages)\n"
SIZE_SOURCE = "    def size(self):\n        return 1\n"
FITTING = {COUNT: digest(COUNT_SOURCE), SIZE: digest(SIZE_SOURCE)}


@pytest.fixture(autouse=True)
def ministack(tmp_path, monkeypatch) -> ModuleType:
    """A module in MiniStack's place."""
    (tmp_path / "fake_ministack.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fake_ministack", raising=False)
    return __import__("fake_ministack")


def make(sources):
    return Patch(sources=sources, replacements=lambda: {COUNT: lambda _: 0, SIZE: lambda _: 2})


def test_a_patch_replaces_functions_and_methods(ministack):
    apply_all([make(FITTING)])

    assert ministack.count([1]) == 0
    assert ministack.Queue().size() == 2


def test_a_patch_may_rely_on_a_function_that_an_earlier_one_replaces(ministack):
    first, second = (Patch(sources=FITTING, replacements=lambda: {COUNT: lambda _: 0}) for _ in range(2))

    apply_all([first, second])

    assert ministack.count([1]) == 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (COUNT, f"the source of {COUNT} has changed (its digest is {digest(COUNT_SOURCE)}"),
        ("fake_ministack:gone", "fake_ministack:gone does not exist"),
        ("no_ministack:count", "no_ministack:count does not exist"),
    ],
    ids=["another source", "a missing function", "a missing module"],
)
def test_a_changed_ministack_is_refused_with_the_patchs_file_and_the_reason(ministack, name, reason):
    with pytest.raises(MiniStackChangedError, match=re.escape(reason)) as refused:
        apply_all([make({**FITTING, name: "0" * 16})])

    assert str(refused.value).startswith("tests/local/emulator/patches/test_patch.py: ")
    assert ministack.count([1]) == 1


def test_all_patches_that_do_not_fit_are_named_at_once():
    with pytest.raises(MiniStackChangedError) as refused:
        apply_all([make({COUNT: "1"}), make({SIZE: "2"})])

    assert len(str(refused.value).splitlines()) == 2


def test_every_patch_has_a_file_of_its_own():
    files = [patch.file for patch in patches("AKIA1")]

    assert all(Path(ROOT, file).is_file() for file in files)
    assert len(set(files)) == len(files)
