"""Users of the exchange: for each an IAM identity, a control queue that identifies the user, and a reply queue."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from signalbox.aws.exchange.policy import policy_text, user_policy
from signalbox.aws.exchange.user_control_queues import USER_TAG, UserControlQueues
from signalbox.aws.shared.errors import translate_read_errors, translate_write_errors
from signalbox.aws.shared.tag_calls import TagCalls
from signalbox.aws.shared.temporary_queues import SqsTemporaryQueues
from signalbox.errors import RejectedError
from signalbox.exchange.model.events import CAPABILITY
from signalbox.exchange.model.names import DEAD_LETTER_MARK
from signalbox.exchange.model.ports import Users
from signalbox.exchange.model.records import User
from signalbox.queues import CAPABILITY_TAG, STAGE_TAG, QueueName, queue_name
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role, is_permitted

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_iam.client import IAMClient
    from mypy_boto3_iam.type_defs import TagTypeDef

OWN = ("q_", "xs_")  # the beginnings of the names of queues and of exchanges that users own
PATH, POLICY = "/signalbox/", "exchange"
KEYS_KEPT = 1  # of the two that IAM allows a user, to leave room for a new one


class UserTaken(RejectedError):
    """Raised when the account has an IAM user of that name that does not belong to this stage."""


@dataclass(frozen=True, slots=True)
class AccessKey:
    """An access key of a user, with IAM's time of its creation. IAM returns the secret only then."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ExchangeUsers:
    """Creates and deletes users, with an administrator's credentials: no function has access to IAM.

    An interrupted operation is completed by repeating it.
    """

    iam: "IAMClient"
    control_queues: UserControlQueues
    boundary: str | None = None
    """The ARN of the policy that bounds the permissions of users."""

    @classmethod
    def of(cls, session: "boto3.Session", outputs: Mapping[str, str]) -> "ExchangeUsers":
        """Return the users of a deployed stage."""
        url, prefix = outputs["ExchangeControlQueueUrl"], outputs["ExchangePrefix"]
        queues = UserControlQueues(session.client("sqs"), session.client("lambda"), url, prefix)
        settings = json.loads(outputs.get("Settings", "{}"))
        account, name = url.split("/")[-2], settings.get("permissions_boundary")
        return cls(session.client("iam"), queues, f"arn:aws:iam::{account}:policy/{name}" if name else None)

    def make(self, name: UserName, role: Role, ownership: Ownership) -> str:
        """Create a user without a key, or change a user's role; return the user's IAM unique id.

        Raises `RejectedError` and `UnavailableError`.
        """
        self.control_queues.names.check_user(name)
        location = self.control_queues.location()
        policy = policy_text(user_policy(name, role, ownership, location))
        user_id = self._identity(name)
        with translate_write_errors(_subject(name)):
            self.iam.put_user_policy(UserName=self._iam_name(name), PolicyName=POLICY, PolicyDocument=policy)
        self.control_queues.make(name, self._tags(name))
        return user_id

    def new_key(self, name: UserName) -> AccessKey:
        """Create and return a new key; the previous one stays valid until the next, for programs to migrate.

        Raises `RejectedError` and `UnavailableError`.
        """
        user = self._iam_name(name)
        with translate_write_errors(_subject(name)):
            known = self.iam.list_access_keys(UserName=user)["AccessKeyMetadata"]
            newest_first = sorted(known, key=lambda key: key["CreateDate"], reverse=True)
            for key in newest_first[KEYS_KEPT:]:
                self.iam.delete_access_key(UserName=user, AccessKeyId=key["AccessKeyId"])
            made = self.iam.create_access_key(UserName=user)["AccessKey"]
        return AccessKey(made["AccessKeyId"], made["SecretAccessKey"], made["CreateDate"])

    def has_key(self, name: UserName) -> bool:
        """Return whether a user has a key. Raises `RejectedError` and `UnavailableError`."""
        with translate_write_errors(_subject(name)):
            return bool(self.iam.list_access_keys(UserName=self._iam_name(name))["AccessKeyMetadata"])

    def owned(self, names: Sequence[UserName], ownership: Ownership) -> Sequence[QueueName]:
        """Return the names in SQS of the queues and exchanges that users of these names own or would own."""
        stage_prefix, queues = self.control_queues.names.prefix, SqsTemporaryQueues(self.control_queues.sqs, TagCalls())
        begins = names[0] if len(names) == 1 else ""
        with translate_read_errors("queues of users"):
            listed = [queue_name(url) for kind in OWN for url in queues.listed(f"{stage_prefix}{kind}{begins}")]
        own = [partial(is_permitted, name, Role.SOURCE, Right.CONFIGURE, ownership=ownership) for name in names]
        return sorted(one for one in listed if any(owns(name=_source(one, stage_prefix)) for owns in own))

    def remove(self, name: UserName) -> None:
        """Delete a user; the user's exchanges and queues stay. Deleting a missing user has no effect.

        Raises `RejectedError` and `UnavailableError`.
        """
        user = self._iam_name(name)
        with translate_write_errors(_subject(name)):
            if self._user_id(name) is not None:
                self._remove(user)
        self.control_queues.remove(name)

    def _remove(self, user: str) -> None:
        for key in self.iam.list_access_keys(UserName=user)["AccessKeyMetadata"]:
            self.iam.delete_access_key(UserName=user, AccessKeyId=key["AccessKeyId"])
        for policy in self.iam.list_user_policies(UserName=user)["PolicyNames"]:
            self.iam.delete_user_policy(UserName=user, PolicyName=policy)
        self.iam.delete_user(UserName=user)

    def _identity(self, name: UserName) -> str:
        with translate_write_errors(_subject(name)):
            return self._user_id(name) or self._new_user(name)

    def _new_user(self, name: UserName) -> str:
        tags: list[TagTypeDef] = [{"Key": key, "Value": value} for key, value in self._tags(name).items()]
        # An account may refuse users without a boundary.
        bound: Any = {} if self.boundary is None else {"PermissionsBoundary": self.boundary}
        made = self.iam.create_user(UserName=self._iam_name(name), Path=PATH, Tags=tags, **bound)
        return made["User"]["UserId"]

    def _user_id(self, name: UserName) -> str | None:
        """Return the IAM unique id of a user, or None. Raises `UserTaken`."""
        user = self._iam_name(name)
        try:
            found = self.iam.get_user(UserName=user)["User"]["UserId"]
        except self.iam.exceptions.NoSuchEntityException:
            return None
        tags = {tag["Key"]: tag["Value"] for tag in self.iam.list_user_tags(UserName=user)["Tags"]}
        if not self._tags(name).items() <= tags.items():
            raise UserTaken(f"the account has an IAM user {user!r} that is not user {name!r} of this stage")
        return found

    def _iam_name(self, name: UserName) -> str:
        # Neither part contains an underscore, so all names differ; they have at most 63 of IAM's 64 characters.
        return f"{self.control_queues.names.stage}_{name}"

    def _tags(self, name: UserName) -> dict[str, str]:
        return {STAGE_TAG: self.control_queues.names.stage, CAPABILITY_TAG: CAPABILITY, USER_TAG: name}


def register(
    identities: ExchangeUsers,
    records: Users,
    name: UserName,
    *,
    role: Role,
    ownership: Ownership = Ownership.STRICT,
    now: datetime,
) -> User:
    """Create a user without a key, or change the role of an existing one; return the record.

    Raises `RejectedError` and `UnavailableError`; an interrupted registration is completed by repeating it.
    """
    known = records.find(name)
    user_id = identities.make(name, role, ownership)
    created_at, commands_from = (known.created_at, known.commands_from) if known else (now, None)
    user = User(name, role, ownership, created_at, user_id, commands_from)
    records.put(user)
    return user


def _source(queue: QueueName, prefix: str) -> str:
    """Return the name of a queue or an exchange, also of one whose dead-letter queue this is."""
    return queue.removeprefix(prefix).replace(DEAD_LETTER_MARK, "")


def _subject(name: UserName) -> str:
    return f"user {name!r}"
