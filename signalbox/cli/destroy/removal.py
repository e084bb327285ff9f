"""The removal of the resources of a stage. Every step can be repeated: what is gone already counts as removed."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from signalbox.aws.rendezvous.credentials import delete_client_key
from signalbox.cli.destroy import splits
from signalbox.cli.destroy.inventory import Inventory, Stack
from signalbox.cli.destroy.plan import Item, Kind
from signalbox.errors import SignalboxError, UnavailableError

if TYPE_CHECKING:
    import boto3

# API Gateway and CloudFormation take a few minutes; a function in a VPC would take longer.
STACK_SECONDS, PAUSE_SECONDS = 3600, 2
# The minimum of KMS, within which a deletion can be cancelled.
RECOVERY_DAYS = 7
DEPLOY_FIRST = "deploy the stage again, so that its functions give consumers their queues back; then remove it"
REMEDY = "correct the cause, then run this command again: it continues where it stopped"

Remove = Callable[[Item], None]


@dataclass(frozen=True, slots=True)
class Failure:
    """A resource that could not be removed, and why."""

    item: Item
    reason: str


@dataclass(slots=True)
class RemovalResult:
    """The resources that a removal has deleted, and those that it could not delete."""

    removed: list[Item] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Removal:
    """Removes a stage, in the order of `Kind`; `say` reports progress."""

    inventory: Inventory
    say: Callable[[str], None]
    result: RemovalResult = field(default_factory=RemovalResult)

    def run(self, *, everything: bool) -> RemovalResult:
        """Remove the resources of the stage: those created at run time, its stack, and its data with `everything`.

        A failure stops neither the other resources of its kind nor those of other kinds, with two exceptions: a split
        that has not ended keeps its functions, and data stays while its stack is there.
        """
        stack = self.inventory.stack()
        if not self._end_splits(stack) or (stack is not None and not self._stack(stack)):
            return self.result
        found = self.inventory
        self._each(found.mappings(), self._mapping)
        self._each(found.queues(), self._queue)
        self._each(found.users(), self._user)
        self._each(found.log_groups(), self._log_group)
        if everything and not self.result.failed:
            self._data()
        return self.result

    def _stack(self, stack: Stack) -> bool:
        """Remove the stack and what keeps CloudFormation from deleting it; return whether it is gone."""
        self._each(self.inventory.client_keys(stack), self._client_key)
        self._each(self.inventory.attachments(stack), self._attachment)
        item = Item(Kind.STACK, stack.name, stack.stack_id)
        self._each([item], self._delete_stack)
        return item in self.result.removed

    def _end_splits(self, stack: Stack | None) -> bool:
        """End all splits; return whether none is left. Without the stack nothing can put their consumers back."""
        state = self.inventory.state_stack()
        items = list(self.inventory.sessions(state))
        if not items:
            return True
        self.say(f"wait until {len(items)} sessions of splits have ended")
        try:
            if stack is None:
                raise UnavailableError(f"stack {self.inventory.stage} does not exist: {DEPLOY_FIRST}")
            splits.end_all(self._session, stack.outputs, lambda: self.inventory.sessions(state))
        except (SignalboxError, ClientError, BotoCoreError) as error:
            self.result.failed += [Failure(item, str(error)) for item in items]
            return False
        self.result.removed += items
        return True

    def _data(self) -> None:
        state = self.inventory.state_stack()
        items = list(self.inventory.data(state))
        # The keys last: until then everything can still be read, also by a repeated command.
        keys, rest = _split(items, lambda item: item.kind is Kind.KEY)
        data, stacks = _split(rest, lambda item: item.kind is not Kind.STATE_STACK)
        self._each([*data, *keys], self._delete_data)
        if not self.result.failed:
            self._each(stacks, self._delete_stack)

    def _each(self, items: Iterable[Item], remove: Remove) -> None:
        for item in items:
            self.say(f"remove {item.kind} {item.name}")
            try:
                remove(item)
            except (SignalboxError, ClientError, BotoCoreError) as error:
                self.result.failed.append(Failure(item, f"{error}; {REMEDY}"))
            else:
                self.result.removed.append(item)

    @property
    def _session(self) -> "boto3.Session":
        return self.inventory.session

    def _client_key(self, item: Item) -> None:
        delete_client_key(self._session, item.identifier, item.name)

    def _attachment(self, item: Item) -> None:
        client = self._session.client("iam")
        kind, _, name = item.name.partition(" ")
        with suppress(client.exceptions.NoSuchEntityException):
            if kind == "user":
                client.detach_user_policy(UserName=name, PolicyArn=item.identifier)
            elif kind == "role":
                client.detach_role_policy(RoleName=name, PolicyArn=item.identifier)
            else:
                client.detach_group_policy(GroupName=name, PolicyArn=item.identifier)

    def _log_group(self, item: Item) -> None:
        client = self._session.client("logs")
        with suppress(client.exceptions.ResourceNotFoundException):
            client.delete_log_group(logGroupName=item.identifier)

    def _delete_stack(self, item: Item) -> None:
        client = self._session.client("cloudformation")
        client.delete_stack(StackName=item.name)
        attempts = int(STACK_SECONDS / PAUSE_SECONDS)
        try:
            client.get_waiter("stack_delete_complete").wait(
                StackName=item.identifier, WaiterConfig={"Delay": PAUSE_SECONDS, "MaxAttempts": attempts}
            )
        except WaiterError as error:
            reasons = self._reasons(item) or str(error)
            raise UnavailableError(f"CloudFormation cannot delete stack {item.name}: {reasons}") from error

    def _reasons(self, item: Item) -> str:
        client = self._session.client("cloudformation")
        events = client.describe_stack_events(StackName=item.identifier)["StackEvents"]
        reasons = {
            f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', '')}"
            for event in events
            if event.get("ResourceStatus") == "DELETE_FAILED"
        }
        return "; ".join(sorted(reasons))

    def _mapping(self, item: Item) -> None:
        client = self._session.client("lambda")
        with suppress(client.exceptions.ResourceNotFoundException):
            client.delete_event_source_mapping(UUID=item.identifier)

    def _queue(self, item: Item) -> None:
        client = self._session.client("sqs")
        with suppress(client.exceptions.QueueDoesNotExist):
            client.delete_queue(QueueUrl=item.identifier)

    def _user(self, item: Item) -> None:
        client, user = self._session.client("iam"), item.identifier
        with suppress(client.exceptions.NoSuchEntityException):
            for key in client.list_access_keys(UserName=user)["AccessKeyMetadata"]:
                client.delete_access_key(UserName=user, AccessKeyId=key["AccessKeyId"])
            for policy in client.list_user_policies(UserName=user)["PolicyNames"]:
                client.delete_user_policy(UserName=user, PolicyName=policy)
            for attached in client.list_attached_user_policies(UserName=user)["AttachedPolicies"]:
                client.detach_user_policy(UserName=user, PolicyArn=attached["PolicyArn"])
            for group in client.list_groups_for_user(UserName=user)["Groups"]:
                client.remove_user_from_group(UserName=user, GroupName=group["GroupName"])
            client.delete_user(UserName=user)

    def _delete_data(self, item: Item) -> None:
        deletions: Mapping[Kind, Callable[[str], None]] = {
            Kind.TABLE: self._table,
            Kind.DATABASE: self._database,
            Kind.BUCKET: self._bucket,
            Kind.KEY: self._key,
        }
        deletions[item.kind](item.identifier)

    def _table(self, name: str) -> None:
        client = self._session.client("dynamodb")
        with suppress(client.exceptions.ResourceNotFoundException):
            if client.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"):
                client.update_table(TableName=name, DeletionProtectionEnabled=False)
            client.delete_table(TableName=name)
            client.get_waiter("table_not_exists").wait(TableName=name)

    def _database(self, name: str) -> None:
        client = self._session.client("glue")
        with suppress(client.exceptions.EntityNotFoundException):
            client.delete_database(Name=name)

    def _bucket(self, name: str) -> None:
        client: Any = self._session.client("s3")  # its stubs do not know the two lists by a variable name
        try:
            # Each list from the start: the marker of a next page is a deleted version, which emulators do not find.
            while objects := _versions(client.list_object_versions(Bucket=name)):
                done = client.delete_objects(Bucket=name, Delete={"Objects": objects, "Quiet": True})
                for one in done.get("Errors", ()):
                    raise UnavailableError(f"{one['Code']} at DeleteObjects of {one['Key']}: {one['Message']}")
            client.delete_bucket(Bucket=name)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucket":
                raise

    def _key(self, key_id: str) -> None:
        client = self._session.client("kms")
        # A key that is deleted already is in an invalid state for it.
        with suppress(client.exceptions.NotFoundException, client.exceptions.KMSInvalidStateException):
            client.schedule_key_deletion(KeyId=key_id, PendingWindowInDays=RECOVERY_DAYS)


def _versions(page: Mapping[str, Any]) -> list[dict[str, str]]:
    found = (one for listed in ("Versions", "DeleteMarkers") for one in page.get(listed, ()))
    return [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in found]


def _split(items: Iterable[Item], is_first: Callable[[Item], bool]) -> tuple[list[Item], list[Item]]:
    first: list[Item] = []
    second: list[Item] = []
    for item in items:
        (first if is_first(item) else second).append(item)
    return first, second
