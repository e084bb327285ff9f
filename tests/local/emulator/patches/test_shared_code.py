"""Instances of functions share one extracted copy of their code."""

import shutil
import tempfile
import threading
import zipfile
from pathlib import Path

import pytest

from signalbox.local.emulator.patches.shared_code import FOLDER, SharedArchive
from tests.local.emulator.functions import invoke_at_once, make_function

CODE = {"lambdas/offer.py": "1", "lambdas/poll.py": "2"}
SHOW_FILE = (
    "import os, time\n"
    "def handler(event, context):\n"
    "    time.sleep(0.5)\n"
    "    return [os.getpid(), os.path.realpath(__file__)]\n"
)


@pytest.fixture
def extract(tmp_path, monkeypatch):
    """A function that extracts files into a folder below `tmp_path`, as MiniStack does for an instance."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def extract_into(name, files=CODE):
        archive_path = tmp_path / f"{name}.zip"
        with zipfile.ZipFile(archive_path, "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
        target = tmp_path / name
        if not target.is_symlink():
            target.mkdir(exist_ok=True)
        with SharedArchive(archive_path) as archive:
            archive.extractall(target)
        return target

    return extract_into


def contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.py")}


def copies(tmp_path: Path) -> list[Path]:
    return list((tmp_path / FOLDER).iterdir())


def test_the_same_code_is_extracted_once_and_other_code_separately(extract, tmp_path):
    first, second = extract("first"), extract("second")
    third = extract("third", {"lambdas/offer.py": "3"})

    assert contents(first) == contents(second) == CODE
    assert first.samefile(second)
    assert contents(third) == {"lambdas/offer.py": "3"}
    assert len(copies(tmp_path)) == 2


def test_code_that_another_thread_extracts_at_the_same_moment_is_extracted_once(extract, tmp_path, monkeypatch):
    barrier = threading.Barrier(2, timeout=10)
    extract_all = zipfile.ZipFile.extractall

    def extract_together(archive, path=None, members=None, pwd=None):
        extract_all(archive, path, members, pwd)
        barrier.wait()  # both have extracted, and neither has renamed its folder

    monkeypatch.setattr(zipfile.ZipFile, "extractall", extract_together)
    threads = [threading.Thread(target=extract, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert contents(tmp_path / "first") == contents(tmp_path / "second") == CODE
    assert len(copies(tmp_path)) == 1


def test_an_extraction_that_was_interrupted_is_not_used(extract, tmp_path, monkeypatch):
    def extract_half(archive, path=None, members=None, pwd=None):
        Path(path, "half.py").write_text("")
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(zipfile.ZipFile, "extractall", extract_half)
        with pytest.raises(OSError, match="No space"):
            extract("first")
    (tmp_path / FOLDER / "unfinished-by-a-killed-process").mkdir()

    assert contents(extract("second")) == CODE


@pytest.mark.parametrize("is_dangling", [False, True], ids=["to a folder", "dangling"])
def test_a_link_at_the_target_is_replaced_and_what_it_leads_to_is_kept(extract, tmp_path, is_dangling):
    other = tmp_path / "other"
    if not is_dangling:
        other.mkdir()
        (other / "kept.py").write_text("")
    (tmp_path / "first").symlink_to(other)

    assert contents(extract("first")) == CODE
    assert other.exists() is not is_dangling
    assert is_dangling or contents(other) == {"kept.py": ""}


def test_names_are_listed_for_checks_until_the_files_are_extracted(extract, tmp_path):
    names = []
    for _ in range(2):
        extract("first")
        with SharedArchive(tmp_path / "first.zip") as archive:
            names.append(archive.namelist())
        shutil.rmtree(tmp_path / FOLDER)
        with SharedArchive(tmp_path / "first.zip") as archive:
            names.append(archive.namelist())

    assert names == [[], list(CODE), [], list(CODE)]


@pytest.mark.parametrize("is_known", [False, True], ids=["new code", "code of another instance"])
def test_a_half_made_folder_at_the_target_is_completed(extract, tmp_path, is_known):
    if is_known:
        extract("other")
    (tmp_path / "first" / "lambdas").mkdir(parents=True)
    (tmp_path / "first" / "lambdas" / "offer.py").write_text("half")

    first = extract("first")

    assert contents(first) == CODE
    assert not first.is_symlink()


def test_a_missing_target_is_made(extract, tmp_path):
    extract("first")

    with SharedArchive(tmp_path / "first.zip") as archive:
        archive.extractall(tmp_path / "second")

    assert contents(tmp_path / "second") == CODE


@pytest.mark.emulator
@pytest.mark.release
def test_two_instances_run_the_same_copy(running):
    session = running.session()
    make_function(session, "where", SHOW_FILE)

    first, second = (one["payload"] for one in invoke_at_once(session, "where", 2))

    assert first[0] != second[0]
    assert first[1] == second[1]
