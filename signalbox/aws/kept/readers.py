"""The IAM users and roles that may read kept messages, by the unique ids with which SQS names senders."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.errors import RejectedError
from signalbox.kept.settings import ROLE_ID, USER_ID, principal_of

if TYPE_CHECKING:
    from mypy_boto3_iam.client import IAMClient
    from mypy_boto3_sts.client import STSClient

USER, ROLE = "user", "role"


class UnknownReader(RejectedError):
    """Raised for a reader who is neither a user nor a role of the account."""


@dataclass(frozen=True, slots=True)
class IamReaders:
    """Finds readers by their names."""

    iam: "IAMClient"
    sts: "STSClient"

    def caller(self) -> tuple[str, str]:
        """Return the unique id and the name of the caller; of an assumed role, those of the role."""
        identity = self.sts.get_caller_identity()
        name = identity["Arn"].rpartition(":")[2]
        return principal_of(identity["UserId"]), "/".join(name.split("/")[:2])

    def find(self, text: str) -> tuple[str, str]:
        """Return the unique id of `NAME`, `user/NAME`, `role/NAME`, an ARN or an id, and its name.

        Raises `UnknownReader`.
        """
        if text.startswith((USER_ID, ROLE_ID)) and text.isalnum() and text.isupper():
            return text, text
        path = text.rpartition(":")[2]
        kind, _, name = path.partition("/") if "/" in path else ("", "", path)
        name = name.rpartition("/")[2]  # without an IAM path
        found = None
        if kind in ("", USER):
            found = self._user(name)
        if found is None and kind in ("", ROLE):
            found = self._role(name)
        if found is None:
            raise UnknownReader(f"{text!r} is no IAM user or role of this account: give user/NAME, role/NAME or an ARN")
        return found

    def _user(self, name: str) -> tuple[str, str] | None:
        try:
            return self.iam.get_user(UserName=name)["User"]["UserId"], f"{USER}/{name}"
        except self.iam.exceptions.NoSuchEntityException:
            return None

    def _role(self, name: str) -> tuple[str, str] | None:
        try:
            return self.iam.get_role(RoleName=name)["Role"]["RoleId"], f"{ROLE}/{name}"
        except self.iam.exceptions.NoSuchEntityException:
            return None
