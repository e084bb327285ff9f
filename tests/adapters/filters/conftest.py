"""The filter engines that the tests of a module share."""

from collections.abc import Iterator

import pytest

from signalbox.filters.engines import Engines
from signalbox.filters.languages import Languages


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    engines = Engines()
    yield engines
    engines.close()


@pytest.fixture(scope="module")
def languages(engines: Engines) -> Languages:
    return Languages(engines)
