"""Every marker of slow tests is run by a check of `make test`."""

import re
from pathlib import Path

from signalbox.local.check import IN_JAVA, SLOW, WITH_JAVA
from signalbox.local.files import CHECKOUT

NOT_LANES = {"minutes"}  # orders tests only
IN_JAVA_BY = re.compile(r"mark\.java|params=STORES")


def test_each_marker_excludes_a_test_from_the_fast_checks() -> None:
    settings = (CHECKOUT / "pyproject.toml").read_text()
    markers = re.findall(r'^    "(\w+): ', settings.partition("markers = [")[2].partition("\n]")[0], re.MULTILINE)

    assert set(markers) - NOT_LANES == {*SLOW.split(" or "), IN_JAVA}


def test_tests_with_parts_in_java_are_in_the_folders_that_their_check_runs() -> None:
    tests = {path: path.read_text() for path in (CHECKOUT / "tests").rglob("test_*.py") if path != Path(__file__)}
    in_java = [path for path, text in tests.items() if IN_JAVA_BY.search(text)]
    folders = [CHECKOUT / name for name in WITH_JAVA]

    assert in_java
    assert [path for path in in_java if not any(folder in path.parents for folder in folders)] == []
