"""The folder of a local stage and the paths in it."""

from dataclasses import dataclass
from pathlib import Path

from signalbox.errors import RejectedError
from signalbox.local.files import CHECKOUT

STAGE_FOLDER = ".signalbox"


@dataclass(frozen=True, slots=True)
class StageFolder:
    """The folder of one local stage: `.signalbox` in the checkout, or a temporary folder in tests."""

    path: Path = CHECKOUT / STAGE_FOLDER

    @property
    def local(self) -> Path:
        """The public file of the running stage, with its URLs and credentials."""
        return self.path / "local.json"

    @property
    def emulator(self) -> Path:
        """The folder of the emulator."""
        return self.path / "emulator"

    @property
    def log(self) -> Path:
        """The emulator's log."""
        return self.emulator / "log"

    @property
    def lock(self) -> Path:
        """The lock file that the running emulator holds; it contains the process id."""
        return self.emulator / "lock"

    @property
    def running(self) -> Path:
        """The file with the emulator's port, instance id and administrator credentials."""
        return self.emulator / "running.json"

    @property
    def routes(self) -> Path:
        """The file with the stable path prefixes of the APIs, which the gateway reads."""
        return self.emulator / "routes.json"

    @property
    def clusters(self) -> Path:
        """The file with the Kubernetes API servers of the emulator's EKS clusters, which the emulator reads."""
        return self.emulator / "clusters.json"

    @property
    def outages(self) -> Path:
        """The file with the names of the services that are away, which an emulator with fault injection reads."""
        return self.emulator / "outages.json"

    @property
    def temporary(self) -> Path:
        """The folder for temporary files of the emulator and its functions; part of every worker's command line."""
        return self.emulator / "tmp"

    @property
    def services(self) -> Path:
        """The folder of the emulator's state while it is restarted."""
        return self.emulator / "services"

    @property
    def objects(self) -> Path:
        """The folder of the objects in the emulator's buckets."""
        return self.emulator / "s3"

    @property
    def assembly(self) -> Path:
        """The folder of the synthesized app."""
        return self.path / "cdk.out"

    @property
    def users(self) -> Path:
        """The folder of the keys of the stage's users."""
        return self.path / "users"

    @property
    def is_used(self) -> bool:
        """True if a stage runs in the folder, or was started in it."""
        return self.local.is_file() or self.lock.is_file()


def find_stage_folder(start: Path) -> StageFolder:
    """Return the stage folder of `start` or of its nearest parent that has one; in the checkout, the checkout's.

    Raises `RejectedError` elsewhere: a command must not stop a stage that its folder does not name.
    """
    here = start.resolve()
    for parent in (here, *here.parents):
        found = StageFolder(parent / STAGE_FOLDER)
        if found.is_used or parent == CHECKOUT:
            return found
    own = StageFolder()
    elsewhere = f"; this program's own stage is that of {str(CHECKOUT)!r}" if own.is_used else ""
    raise RejectedError(
        f"no local stage was started in {str(here)!r} or above{elsewhere}: run the command in its folder"
    )
