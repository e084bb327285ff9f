"""Every marker of slow tests is run by a check of `make test`."""

import re
from pathlib import Path

import pytest

from signalbox.local.check import IN_JAVA, ON_KUBERNETES, SLOW, WITH_JAVA, WITH_KUBERNETES
from signalbox.local.files import CHECKOUT

NOT_LANES = {"minutes"}  # orders tests only
IN_JAVA_BY = re.compile(r"mark\.java|params=STORES")
ON_KUBERNETES_BY = re.compile(r"mark\.kubernetes")


def test_each_marker_excludes_a_test_from_the_fast_checks() -> None:
    settings = (CHECKOUT / "pyproject.toml").read_text()
    markers = re.findall(r'^    "(\w+): ', settings.partition("markers = [")[2].partition("\n]")[0], re.MULTILINE)

    assert set(markers) - NOT_LANES == {*SLOW.split(" or "), IN_JAVA, ON_KUBERNETES}


@pytest.mark.parametrize(
    ("marked", "folders"), [(IN_JAVA_BY, WITH_JAVA), (ON_KUBERNETES_BY, WITH_KUBERNETES)], ids=["java", "kubernetes"]
)
def test_marked_tests_are_in_the_folders_that_their_check_runs(
    marked: re.Pattern[str], folders: tuple[str, ...]
) -> None:
    tests = {path: path.read_text() for path in (CHECKOUT / "tests").rglob("test_*.py") if path != Path(__file__)}
    found = [path for path, text in tests.items() if marked.search(text)]
    run = [CHECKOUT / name for name in folders]

    assert found
    assert [path for path in found if not any(folder in path.parents for folder in run)] == []
