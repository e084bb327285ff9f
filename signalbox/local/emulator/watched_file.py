"""A JSON file that another process replaces, read again when it has changed."""

import json
from pathlib import Path
from typing import Any


class WatchedFile:
    """The document of a JSON file, or `missing` while there is no file."""

    def __init__(self, path: Path, *, missing: object) -> None:
        self._path, self._missing = path, missing
        self._version: tuple[int, int] | None = None
        self._document: Any = missing

    def read(self) -> Any:  # noqa: ANN401 - any JSON
        """Return the current document."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return self._missing
        # The file is replaced, never edited, so its inode changes even within one tick of the clock.
        if (status.st_ino, status.st_mtime_ns) != self._version:
            self._document = json.loads(self._path.read_text())
            self._version = (status.st_ino, status.st_mtime_ns)
        return self._document
