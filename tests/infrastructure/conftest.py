"""The synthesized templates of two stages, once for all tests."""

import pytest

from tests.infrastructure.other_settings import OTHERWISE
from tests.infrastructure.templates import EVERYTHING, Templates, templates


@pytest.fixture(scope="session")
def stage() -> Templates:
    """Return a stage with all that is off by default, and the defaults for everything else."""
    return templates(**EVERYTHING)


@pytest.fixture(scope="session")
def otherwise() -> Templates:
    """Return a stage with other values than the defaults."""
    return templates(**OTHERWISE)
