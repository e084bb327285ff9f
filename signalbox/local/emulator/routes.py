"""The table of stable path prefixes, read from `routes.json`, which each deployment writes."""

from pathlib import Path

from signalbox.local.emulator.watched_file import WatchedFile


class Routes:
    """Stable path prefixes and the paths of the APIs that they lead to, as the last deployment wrote them."""

    def __init__(self, path: Path) -> None:
        self._targets = WatchedFile(path, missing={})

    def target(self, path: str) -> str | None:
        """Return the path of the API behind `path`, or None if `path` begins with no stable prefix."""
        prefix, slash, rest = path.removeprefix("/").partition("/")
        target = self._targets.read().get(prefix)
        return None if target is None else f"{target}{slash or '/'}{rest}"
