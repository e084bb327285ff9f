"""The synthesized templates of the default stage, once for all tests."""

import pytest

from tests.infrastructure.templates import EVERYTHING, Templates, templates


@pytest.fixture(scope="session")
def stage() -> Templates:
    return templates(**EVERYTHING)
