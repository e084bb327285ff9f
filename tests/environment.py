"""The environment of all tests, so that none depends on whose terminal, language, time zone or account it runs in."""

import os
import tempfile
import time
from pathlib import Path

from signalbox.local import tools

# Tests that need a terminal, colours or a width set them.
SETTINGS = {"TERM": "dumb", "LANG": "C.UTF-8", "TZ": "UTC"}
UNSET = ("COLUMNS", "LINES", "LANGUAGE", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERMINAL_WIDTH")
UMASK = 0o022


def settle() -> None:
    """Set the environment of this process and of those that it starts."""
    kept = {name: value for name, value in os.environ.items() if name not in UNSET and not name.startswith("LC_")}
    settled = {**tools.hermetic_environment(kept), **SETTINGS, **_files_of_nobody()}
    for name in os.environ.keys() - settled.keys():
        del os.environ[name]
    os.environ.update(settled)
    os.umask(UMASK)
    time.tzset()


def _files_of_nobody() -> dict[str, str]:
    """Return the variables that keep files of the user's home out; caches of installers stay there."""
    nowhere = Path(tempfile.gettempdir()) / "signalbox-tests-use-no-home"
    return {
        "XDG_STATE_HOME": str(nowhere),
        "AWS_CONFIG_FILE": str(nowhere / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(nowhere / "credentials"),
    }
