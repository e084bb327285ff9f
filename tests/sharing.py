"""Texts that parallel test processes share: the first process that needs one makes it."""

import fcntl
from collections.abc import Callable
from pathlib import Path


class SharedTexts:
    """The folder of the texts of a test run; without one, a process makes its own."""

    folder: Path | None = None

    def get(self, name: str, make: Callable[[], str]) -> str:
        """Return the text of this name."""
        if self.folder is None:
            return make()
        path = self.folder / name
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                path.write_text(make())
        return path.read_text()


SHARED = SharedTexts()
