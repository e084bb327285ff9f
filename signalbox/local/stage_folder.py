"""The folder of a local stage and the paths in it."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from signalbox.errors import RejectedError
from signalbox.local.files import CHECKOUT

STAGE_FOLDER = ".signalbox"
EMULATOR = "emulator"  # the folder of the emulator


class PathBelow:
    """A path as a property of a stage's folder."""

    def __init__(self, *names: str) -> None:
        """Name the path below each stage's folder."""
        self._names = names

    def __get__(self, stage_folder: "StageFolder", _owner: object = None) -> Path:
        """Return the path below `stage_folder`."""
        return stage_folder.path.joinpath(*self._names)


@dataclass(frozen=True, slots=True)
class StageFolder:
    """The folder of one local stage: `.signalbox` in the checkout, or a temporary folder in tests."""

    path: Path = CHECKOUT / STAGE_FOLDER

    local = PathBelow("local.json")  # the public file of the running stage, with its URLs and credentials
    emulator = PathBelow(EMULATOR)
    log = PathBelow(EMULATOR, "log")
    lock = PathBelow(EMULATOR, "lock")  # the running emulator holds it; it contains the process id
    running = PathBelow(EMULATOR, "running.json")  # the emulator's port, instance id and administrator credentials
    routes = PathBelow(EMULATOR, "routes.json")  # the stable path prefixes of the APIs, which the gateway reads
    clusters = PathBelow(EMULATOR, "clusters.json")  # the Kubernetes API servers of the emulator's EKS clusters
    outages = PathBelow(EMULATOR, "outages.json")  # the services that are away, if the emulator has fault injection
    temporary = PathBelow(EMULATOR, "tmp")  # of emulator and functions; part of every worker's command line
    services = PathBelow(EMULATOR, "services")  # the emulator's state while it is restarted
    objects = PathBelow(EMULATOR, "s3")  # the objects in the emulator's buckets
    assembly = PathBelow("cdk.out")  # the synthesized app
    users = PathBelow("users")  # the keys of the stage's users

    @property
    def is_used(self) -> bool:
        """True if a stage runs in the folder, or was started in it."""
        return self.local.is_file() or self.lock.is_file()


def find_stage_folder(start: Path) -> StageFolder:
    """Return the stage folder of `start` or of its nearest parent that has one; in the checkout, the checkout's.

    Raises `RejectedError` elsewhere, and for the folder of another user: a command stops processes and deletes files
    that the folder names.
    """
    here = start.resolve()
    for parent in (here, *here.parents):
        found = StageFolder(parent / STAGE_FOLDER)
        if found.is_used or parent == CHECKOUT:
            for path in (found.path, found.emulator, found.lock, found.local):
                _refuse_others(path)
            return found
    own = StageFolder()
    elsewhere = f"; this program's own stage is that of {str(CHECKOUT)!r}" if own.is_used else ""
    raise RejectedError(
        f"no local stage was started in {str(here)!r} or above{elsewhere}: run the command in its folder"
    )


def _refuse_others(path: Path) -> None:
    """Refuse a file of another user, and a link, which may lead anywhere. Raises `RejectedError`."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if status.st_uid not in (os.getuid(), 0) or stat.S_ISLNK(status.st_mode):
        raise RejectedError(f"{str(path)!r} belongs to another user, or is a link: work in another folder")
