"""The types of boto3's clients, requests and answers; type checkers have them from `client_types.pyi`."""

from typing import Any


def __getattr__(name: str) -> object:
    """Return a type for any name of a type: programs run without boto3's stubs, and do not read annotations."""
    if name.startswith("__"):  # such as `__path__`, which the import system reads
        raise AttributeError(name)
    return Any
