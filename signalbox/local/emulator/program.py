"""The emulator's program: its Python, its environment variables, and the start of its process."""

import json
import os
import subprocess
from contextlib import suppress
from typing import Any

from signalbox.local.files import CHECKOUT
from signalbox.local.stage_folder import StageFolder

HOST = "127.0.0.1"
ACCOUNT = "000000000000"
# The user of the local stage's own commands, which exists on no AWS account.
ADMINISTRATOR = "signalbox-administrator"
PYTHON = CHECKOUT / ".signalbox" / "emulator" / "venv" / "bin" / "python"
SERVER = "signalbox.local.emulator.server"


def environment(stage_folder: StageFolder, *, port: int, region: str) -> dict[str, str]:
    """Return the emulator's whole environment. Functions inherit it, so it has no variable of the user."""
    emulator = stage_folder.emulator
    return {
        "PATH": f"{PYTHON.parent}{os.pathsep}{os.defpath}",
        "HOME": str(stage_folder.temporary),
        "LANG": "C.UTF-8",
        "TMPDIR": str(stage_folder.temporary),
        "AUTH": "true",
        # The state is saved when the emulator ends by SIGTERM, as `restart` ends it.
        "PERSIST_STATE": "1",
        "S3_PERSIST": "1",
        "GATEWAY_PORT": str(port),
        "MINISTACK_REGION": region,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "STATE_DIR": str(stage_folder.services),
        "S3_DATA_DIR": str(stage_folder.objects),
        "BIND_HOST": HOST,
        "MINISTACK_HOST": HOST,  # in queue URLs: `localhost` may resolve to ::1, where nothing listens
        # Services that are not used here: their listeners would bind to all interfaces.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        # Functions run as processes, also on a machine with a Docker daemon.
        "DOCKER_HOST": f"unix://{emulator / 'no-docker'}",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def spawn(
    stage_folder: StageFolder, inherited: list[int], environment: dict[str, str], *, secret: dict[str, Any]
) -> subprocess.Popen[str]:
    """Start the emulator, which inherits these descriptors, and write the secret to its standard input.

    The secret has the root credential, which is in no command line, environment variable or file.
    """
    with stage_folder.log.open("w") as log:
        process = subprocess.Popen(
            [str(PYTHON), "-P", "-s", "-m", SERVER, str(stage_folder.emulator), *map(str, inherited)],
            cwd=stage_folder.temporary,
            # The emulator's environment does not have this package.
            env={**environment, "PYTHONPATH": str(CHECKOUT)},
            pass_fds=inherited,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
    assert process.stdin is not None  # noqa: S101 - for mypy: it was opened as a pipe
    with suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(json.dumps(secret))
    return process
