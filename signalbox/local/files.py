"""The checkout's path, and JSON files that only their owner can read."""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from signalbox import checkout
from signalbox.errors import RejectedError, UnavailableError
from signalbox.local.setup import unwritable_home

MEGABYTE = 1024 * 1024
LEAST_FREE_BYTES = 500 * MEGABYTE
CHECKOUT = checkout.CHECKOUT
# The variable of jsii with the major versions of Node that it runs on without a warning.
QUIET_ABOUT_NODE = ("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "18,20,22")


def require_checkout() -> None:
    """Raise `RejectedError` without a checkout, which contains the CDK app, or a home folder for the CDK's caches."""
    checkout.require_checkout()
    if problem := unwritable_home():
        raise RejectedError(problem)


def require_settings() -> None:
    """Raise `RejectedError` without the checkout's settings, and let jsii, which they start, print no warning."""
    require_checkout()
    # jsii prints it as Python's bytes.
    os.environ.setdefault(*QUIET_ABOUT_NODE)


def require_disk_space(folder: Path) -> None:
    """Make a folder, and raise `UnavailableError` if its disk is nearly full: the emulator would fail somewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise UnavailableError(
            f"the disk of {str(folder)!r} has {free // MEGABYTE} MB free, and a local stage needs "
            f"{LEAST_FREE_BYTES // MEGABYTE} MB: free some space"
        )


def write_json(path: Path, value: object) -> None:
    """Write a file atomically, readable by its owner only."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp: readable by its owner only
    with os.fdopen(handle, "w") as file:
        json.dump(value, file, indent=2)
        file.write("\n")
    Path(name).replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, or None if the file does not exist."""
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return content
