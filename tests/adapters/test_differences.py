"""The table of differences names tests that exist."""

from pathlib import Path

import pytest

from tests.adapters.differences import DIFFERENCES

HERE = Path(__file__).parent


@pytest.mark.parametrize("entry", DIFFERENCES)
def test_a_difference_is_of_a_test(entry: str) -> None:
    file, _, test = entry.partition("[")[0].partition("::")

    assert f"def {test}(" in (HERE / file).read_text()
