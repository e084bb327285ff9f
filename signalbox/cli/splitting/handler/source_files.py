"""Changes of a handler's code."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SUFFIX = ".py"
VIRTUAL_ENVIRONMENT = "pyvenv.cfg"
SKIPPED = frozenset({"node_modules", "cdk.out", "__pycache__"})

State = tuple[int, int]  # the time of the last change in nanoseconds, and the size


@dataclass(slots=True)
class SourceFiles:
    """The Python files below a folder, without virtual environments and hidden folders."""

    folder: Path
    _seen: Mapping[str, State] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._seen = dict(_states(self.folder))

    def changed(self) -> list[str]:
        """Return the files that were changed, added or removed since the last call, relative to the folder."""
        before, self._seen = self._seen, dict(_states(self.folder))
        names = before.keys() | self._seen.keys()
        return sorted(os.path.relpath(one, self.folder) for one in names if before.get(one) != self._seen.get(one))


def _states(folder: Path) -> Iterator[tuple[str, State]]:
    for path, folders, files in os.walk(folder):
        if VIRTUAL_ENVIRONMENT in files:
            folders.clear()
            continue
        folders[:] = [one for one in folders if not one.startswith(".") and one not in SKIPPED]
        for name in files:
            if name.endswith(SUFFIX):
                yield from _state(Path(path, name))


def _state(path: Path) -> Iterator[tuple[str, State]]:
    try:
        found = path.stat()
    except FileNotFoundError:  # an editor is replacing it
        return
    yield str(path), (found.st_mtime_ns, found.st_size)
