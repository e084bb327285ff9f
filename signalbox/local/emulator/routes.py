"""The table of stable path prefixes, read from `routes.json`, which each deployment writes."""

import json
from pathlib import Path


class ApiPaths:
    """Stable path prefixes and the paths of the APIs that they lead to, as the last deployment wrote them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version: tuple[int, int] | None = None
        self._targets: dict[str, str] = {}

    def target(self, path: str) -> str | None:
        """Return the path of the API behind `path`, or None if `path` begins with no stable prefix."""
        prefix, slash, rest = path.removeprefix("/").partition("/")
        target = self._read().get(prefix)
        return None if target is None else f"{target}{slash or '/'}{rest}"

    def _read(self) -> dict[str, str]:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return {}
        # The file is replaced, never edited, so its inode changes even within one tick of the clock.
        if (status.st_ino, status.st_mtime_ns) != self._version:
            self._targets = json.loads(self._path.read_text())
            self._version = (status.st_ino, status.st_mtime_ns)
        return self._targets
