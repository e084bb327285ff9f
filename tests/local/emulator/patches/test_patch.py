"""A patch is applied to the MiniStack that it was written for, and to no other."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from signalbox.local.emulator.patches import patch as guard
from signalbox.local.emulator.patches import patches
from signalbox.local.emulator.patches.patch import MiniStackChangedError, Patch, apply_all, digest
from signalbox.local.setup import EMULATOR_REQUIREMENTS, ROOT

SOURCE = """\
TABLE = {}

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


@pytest.fixture(autouse=True)
def ministack(tmp_path, monkeypatch) -> ModuleType:
    """A module in MiniStack's place, at version 1.5.33."""
    (tmp_path / "fake_ministack.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fake_ministack", raising=False)
    monkeypatch.setattr(guard, "version", lambda _package: "1.5.33")
    return __import__("fake_ministack")


def make(version="1.5.33", sources=None, replacements=None):
    return Patch(
        module="signalbox.local.emulator.patches.counting",
        version=version,
        sources={COUNT: digest(COUNT_SOURCE)} if sources is None else sources,
        replacements=lambda: {COUNT: lambda _messages: 0} if replacements is None else replacements,
    )


def test_a_patch_replaces_functions_and_methods(ministack):
    sources = {COUNT: digest(COUNT_SOURCE), SIZE: digest(SIZE_SOURCE), "fake_ministack:TABLE": None}

    apply_all([make(sources=sources, replacements={COUNT: lambda _: 0, SIZE: lambda _: 2})])

    assert ministack.count([1]) == 0
    assert ministack.Queue().size() == 2


@pytest.mark.parametrize(
    ("patch", "reason"),
    [
        (make(version="1.5.32"), "version 1.5.33 is installed"),
        (make(sources={COUNT: "0" * 16}), f"the source of {COUNT} has changed (its digest is {digest(COUNT_SOURCE)}"),
        (make(sources={"fake_ministack:gone": "0" * 16}), "fake_ministack:gone does not exist"),
        (make(sources={"fake_ministack:GONE": None}), "fake_ministack:GONE does not exist"),
        (make(sources={"no_ministack:count": "0" * 16}), "no_ministack:count does not exist"),
    ],
    ids=["another version", "another source", "a missing function", "a missing table", "a missing module"],
)
def test_a_changed_ministack_is_refused_with_the_patchs_file_and_the_reason(ministack, patch, reason):
    with pytest.raises(MiniStackChangedError, match=re.escape(reason)) as refused:
        apply_all([patch])

    assert str(refused.value).startswith("signalbox/local/emulator/patches/counting.py patches MiniStack 1.5.")
    assert ministack.count([1]) == 1


def test_all_patches_that_do_not_fit_are_named_at_once():
    with pytest.raises(MiniStackChangedError) as refused:
        apply_all([make(version="1"), make(version="2")])

    assert len(str(refused.value).splitlines()) == 2


def test_every_patch_is_for_the_ministack_that_is_installed_and_has_a_file():
    pinned = re.search(r"^ministack==(.+)$", EMULATOR_REQUIREMENTS.read_text(), re.MULTILINE)
    found = patches("AKIA1")

    assert pinned is not None
    assert {patch.version for patch in found} == {pinned[1]}
    assert all(Path(ROOT, patch.module.replace(".", "/") + ".py").is_file() for patch in found)
    assert len({patch.module for patch in found}) == len(found)
