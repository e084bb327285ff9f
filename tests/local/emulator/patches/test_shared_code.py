"""Instances of functions share one extracted copy of their code."""

import tempfile
import threading
import zipfile
from pathlib import Path

import pytest

from signalbox.local.emulator.patches.shared_code import SharedArchive
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
    """A function that extracts files into a folder below `tmp_path`, as MiniStack does; it returns the names, too."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def extract_into(name, files=CODE):
        archive_path, target = tmp_path / f"{name}.zip", tmp_path / name
        with zipfile.ZipFile(archive_path, "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
        target.mkdir()
        with SharedArchive(archive_path) as archive:
            names = archive.namelist()
            archive.extractall(target)
        return target, names

    return extract_into


def contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.py")}


def test_the_same_code_is_extracted_once_and_other_code_separately(extract):
    (first, names), (second, no_names) = extract("first"), extract("second")
    third, _ = extract("third", {"lambdas/offer.py": "3"})

    assert contents(first) == contents(second) == CODE
    assert (names, no_names) == (list(CODE), [])
    assert first.samefile(second)
    assert contents(third) == {"lambdas/offer.py": "3"}


def test_two_threads_may_extract_the_same_code_at_the_same_moment(extract, tmp_path, monkeypatch):
    barrier = threading.Barrier(2, timeout=10)
    extract_all = zipfile.ZipFile.extractall

    def extract_together(archive, path=None):
        extract_all(archive, path)
        barrier.wait()  # both have extracted, and neither has renamed its folder

    monkeypatch.setattr(zipfile.ZipFile, "extractall", extract_together)
    threads = [threading.Thread(target=extract, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert contents(tmp_path / "first") == contents(tmp_path / "second") == CODE


def test_an_extraction_that_was_interrupted_is_not_used(extract, monkeypatch):
    def extract_half(archive, path=None):
        Path(path, "half.py").write_text("")
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(zipfile.ZipFile, "extractall", extract_half)
        with pytest.raises(OSError, match="No space"):
            extract("first")

    assert contents(extract("second")[0]) == CODE


@pytest.mark.emulator
@pytest.mark.release
def test_two_instances_run_the_same_copy(running):
    session = running.session()
    make_function(session, "where", SHOW_FILE)

    first, second = (one["payload"] for one in invoke_at_once(session, "where", 2))

    assert first[0] != second[0]
    assert first[1] == second[1]
