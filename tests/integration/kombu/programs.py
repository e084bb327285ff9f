"""What kombu's programs on a stage need: a working folder that has the stage, and a user with a stored key."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.cli.shared.deployment import Deployment
from signalbox.cli.shared.user_keys import keep_user_key
from signalbox.flows.exchange import exchange_user
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Role


def working_folder(folder: Path, stage_folder: Path) -> Path:
    """Return a folder in which programs find the stage."""
    (folder / ".signalbox").symlink_to(stage_folder)
    return folder


@contextmanager
def user_with_key(deployment: Deployment, stage_folder: Path, name: str) -> Iterator[str]:
    """Create a source whose key is stored in the stage's folder."""
    with exchange_user(deployment, UserName(name), Role.SOURCE) as client:
        signer: Any = client.sqs._request_signer  # only the client has the user's key
        key = ClientCredentials(signer._credentials.access_key, signer._credentials.secret_key)
        keep_user_key(replace(deployment, folder=stage_folder), UserName(name), key)
        yield name
