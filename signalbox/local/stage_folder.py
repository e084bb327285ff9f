"""The folder of a local stage and the paths in it."""

from dataclasses import dataclass
from pathlib import Path

from signalbox.local.files import CHECKOUT


@dataclass(frozen=True, slots=True)
class StageFolder:
    """The folder of one local stage: `.signalbox` in the checkout, or a temporary folder in tests."""

    path: Path = CHECKOUT / ".signalbox"

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
    def temporary(self) -> Path:
        """The folder for temporary files of the emulator and its functions; part of every worker's command line."""
        return self.emulator / "tmp"

    @property
    def assembly(self) -> Path:
        """The folder of the synthesized app."""
        return self.path / "cdk.out"
