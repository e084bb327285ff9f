"""Where files may go: below their directory, whatever an announcement says."""

import os
from pathlib import Path

from signalbox.errors import RejectedError

OWN_DIRECTORY = ".signalbox"
"""Where what is not complete waits, in the directory of files: one rename away from its place."""
UP = ".."


class UnsafePath(RejectedError):
    """Raised when an announcement would have something done outside of the directory for files."""


def place_of(path: str, directory: Path) -> Path:
    """Return where a file of this path goes. Raises `UnsafePath`.

    Links that are there already must not lead out of the directory either.
    """
    parts = path.split("/")
    if path.startswith("/"):
        raise UnsafePath(f"path {path[:200]!r} is absolute")
    if UP in parts:
        raise UnsafePath(f"path {path[:200]!r} leads out of the directory for files")
    names = [part for part in parts if part not in ("", ".")]
    if not names or names[0] == OWN_DIRECTORY or not _is_possible(path):
        raise UnsafePath(f"path {path[:200]!r} is none for a file")
    place = directory.joinpath(*names)
    _refuse_outside(place.parent, directory, path)
    return place


def link_target(target: str, place: Path, directory: Path) -> str:
    """Return where a link at a place may lead: below the directory. Raises `UnsafePath`."""
    if not target or target.startswith("/") or not _is_possible(target):
        raise UnsafePath(f"a link to {target[:200]!r} leads out of the directory for files")
    _refuse_outside(place.parent / target, directory, target)
    return target


def _is_possible(path: str) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # JSON may hold half of a pair
        return False


def _refuse_outside(path: Path, directory: Path, told: str) -> None:
    # Not by counting `..`: what is there already may be a link to anywhere.
    real, root = os.path.realpath(path), os.path.realpath(directory)
    if os.path.commonpath([real, root]) != root:
        raise UnsafePath(f"{told[:200]!r} leads out of the directory for files")
