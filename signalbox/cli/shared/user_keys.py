"""Access keys of the local stage's users, in files that only their owner can read."""

from typing import TYPE_CHECKING

from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.errors import RejectedError
from signalbox.local.files import read_json, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from signalbox.clients.deployment import Deployment
    from signalbox.sarracenia.rights.names import UserName

KEY_ID, SECRET = "access_key_id", "secret_access_key"


def keep_user_key(deployment: "Deployment", user: "UserName", key: ClientCredentials) -> "Path | None":
    """Write a user's key into the local stage's folder and return its path; return None for a stage in AWS."""
    from signalbox.clients.deployment import LocalDeployment

    if not isinstance(deployment, LocalDeployment):
        return None
    path = _path(deployment.folder, user)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_json(path, {"user": user, KEY_ID: key.access_key_id, SECRET: key.secret_access_key})
    return path


def forget_user_key(deployment: "Deployment", user: "UserName") -> None:
    """Delete the file of `keep_user_key`."""
    from signalbox.clients.deployment import LocalDeployment

    if isinstance(deployment, LocalDeployment):
        _path(deployment.folder, user).unlink(missing_ok=True)


def user_key(deployment: "Deployment", user: "UserName") -> ClientCredentials:
    """Return the key of a user of the local stage."""
    from signalbox.clients.deployment import LocalDeployment

    if not isinstance(deployment, LocalDeployment):
        raise RejectedError("keys of users are stored for the local stage only")
    path = _path(deployment.folder, user)
    found = read_json(path)
    if found is None:
        raise RejectedError(
            f"there is no key of user {user!r} ({path}): `signalbox user list` lists the users, "
            f"`signalbox user add {user} --role ROLE` makes the user, `signalbox user rotate {user}` a new key"
        )
    return ClientCredentials(found[KEY_ID], found[SECRET])


def _path(folder: "Path", user: "UserName") -> "Path":
    from signalbox.local.stage_folder import StageFolder

    return StageFolder(folder).users / f"{user}.json"
