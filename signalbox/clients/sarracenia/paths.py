"""Paths of downloaded files: confined to their directory, whatever an announcement contains."""

import os
from pathlib import Path

from signalbox.errors import RejectedError

STAGING_DIRECTORY = ".signalbox"
"""Holds incomplete files; it is inside the download directory, so that one rename moves a file to its place."""
UP = ".."


class UnsafePath(RejectedError):
    """Raised when an announcement leads to a path outside of the download directory."""


def destination_of(path: str, directory: Path) -> Path:
    """Return the destination of an announced path below a directory. Raises `UnsafePath`.

    Existing symbolic links must not lead out of the directory either.
    """
    parts = path.split("/")
    if path.startswith("/"):
        raise UnsafePath(f"path {path[:200]!r} is absolute")
    if UP in parts:
        raise UnsafePath(f"path {path[:200]!r} leads out of the download directory")
    names = [part for part in parts if part not in ("", ".")]
    if not names or names[0] == STAGING_DIRECTORY or not _is_possible(path):
        raise UnsafePath(f"path {path[:200]!r} does not name a file")
    destination = directory.joinpath(*names)
    _refuse_outside(destination.parent, directory, path)
    return destination


def link_target(target: str, link: Path, directory: Path) -> str:
    """Return the target of a symbolic link, which must be below the directory. Raises `UnsafePath`."""
    if not target or target.startswith("/") or not _is_possible(target):
        raise UnsafePath(f"a link to {target[:200]!r} leads out of the download directory")
    _refuse_outside(link.parent / target, directory, target)
    return target


def _is_possible(path: str) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # JSON may hold half of a surrogate pair
        return False


def _refuse_outside(path: Path, directory: Path, announced: str) -> None:
    # Resolve the path instead of counting `..`: an existing link may lead anywhere.
    real, root = os.path.realpath(path), os.path.realpath(directory)
    if os.path.commonpath([real, root]) != root:
        raise UnsafePath(f"{announced[:200]!r} leads out of the download directory")
