"""The folder in which a command saves its files."""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from signalbox.errors import RejectedError

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment


def output_folder(deployment: "Deployment", given: Path | None, name: str) -> Path:
    """Return the given folder, or the folder `name` in that of the local stage or in `.signalbox`."""
    from signalbox.clients.deployment import LocalDeployment

    return given or (deployment.folder if isinstance(deployment, LocalDeployment) else Path(".signalbox")) / name


def check_writable(folder: Path) -> None:
    """Create a folder, and let only this command's user read what is saved: the files have others' messages.

    Raises `RejectedError` before the work if its results cannot be saved.
    """
    os.umask(0o077)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise RejectedError(f"cannot write to {str(folder)!r}: {error.strerror}; give another --folder") from error
