"""A running router."""

from collections.abc import Sequence
from typing import NamedTuple


class RouterProcess(NamedTuple):
    """The URLs of a router's realms, and its process, which may have children."""

    urls: Sequence[str]
    pid: int
