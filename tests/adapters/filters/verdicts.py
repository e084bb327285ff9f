"""Filters with messages and verdicts, as documents."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).with_name("mirrord")


def verdicts(name: str, key: str) -> list[Any]:
    """Return the verdicts of a file, named by their number and the field with this key."""
    found = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return [pytest.param(one, id=f"{number}-{one[key]}"[:60]) for number, one in enumerate(found)]
