"""The resources of a stage in AWS: those of no stack are found by tags, and log groups by a prefix of their own."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from signalbox.aws.shared.tag_calls import TagCalls
from signalbox.cli.destroy.plan import DATA_TYPES, STATE_SUFFIX, Item, Kind, is_created_at_run_time, job_log_prefix
from signalbox.cli.destroy.splits import sessions
from signalbox.cli.exchange.stage import stage_name
from signalbox.clients.stage_session import found_stack, outputs_of
from signalbox.errors import RejectedError
from signalbox.queues import CAPABILITY_TAG, STAGE_TAG

if TYPE_CHECKING:
    import boto3

THREADS = 10  # the size of botocore's connection pool
USER_PATH = "/signalbox/"
GONE = "DELETE_COMPLETE"
SPLITS = "Splits"  # the logical id of the table, before CDK's hash
WAITING = "ApproximateNumberOfMessages"

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack that exists."""

    name: str
    stack_id: str
    outputs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Inventory:
    """Finds the resources of a stage in the session's account and region."""

    session: "boto3.Session"
    stage: str
    tag_calls: TagCalls = field(default_factory=TagCalls)

    def stack(self) -> Stack | None:
        """Return the stack, or None. Raises `RejectedError` for a stack that is not a stage's."""
        found = self._stack(self.stage)
        if found is not None and stage_name(found.outputs.get("ExchangeControlQueueUrl", "")) != self.stage:
            # A first deployment that failed has no outputs.
            self._require_tag(found)
        return found

    def state_stack(self) -> Stack | None:
        """Return the state stack, or None. Raises `RejectedError` for a stack that is not a stage's."""
        found = self._stack(self.stage + STATE_SUFFIX)
        if found is not None:
            self._require_tag(found)
        return found

    def sessions(self, state: Stack | None) -> Iterator[Item]:
        """Yield the sessions of splits on record, whether or not the functions that end them exist."""
        resources = () if state is None else self._resources(state.name)
        tables = [one["PhysicalResourceId"] for one in resources if one["LogicalResourceId"].startswith(SPLITS)]
        for target, name in (pair for table in tables for pair in sessions(self.session, table)):
            yield Item(Kind.SESSION, name, target, f"ends, and {target} gets its queues back")

    def client_keys(self, stack: Stack) -> Iterator[Item]:
        """Yield the access keys of the stack's IAM user for Snowflake clients."""
        iam = self.session.client("iam")
        user = stack.outputs.get("ClientUserName")
        if user is None:
            return
        with suppress(iam.exceptions.NoSuchEntityException):
            for key in iam.list_access_keys(UserName=user)["AccessKeyMetadata"]:
                yield Item(Kind.CLIENT_KEY, key["AccessKeyId"], user)

    def attachments(self, stack: Stack) -> Iterator[Item]:
        """Yield the identities to which people have attached the stack's policy for users of splits."""
        iam = self.session.client("iam")
        policy = stack.outputs.get("SplitUserPolicyArn")
        if policy is None:
            return
        with suppress(iam.exceptions.NoSuchEntityException):
            for page in iam.get_paginator("list_entities_for_policy").paginate(PolicyArn=policy):
                names = [f"user {one['UserName']}" for one in page["PolicyUsers"]]
                names += [f"role {one['RoleName']}" for one in page["PolicyRoles"]]
                names += [f"group {one['GroupName']}" for one in page["PolicyGroups"]]
                yield from (Item(Kind.ATTACHMENT, name, policy) for name in names)

    def mappings(self) -> Sequence[Item]:
        """Return the event source mappings that functions or commands of the stage have created."""
        client = self.session.client("lambda")
        pages = client.get_paginator("list_event_source_mappings").paginate()
        every = (one for page in pages for one in page["EventSourceMappings"])
        found = [one for one in every if ":sqs:" in one.get("EventSourceArn", "")]
        return _kept(found, partial(self._mapping, client))

    def queues(self) -> Sequence[Item]:
        """Return the queues that functions, commands and clients of the stage have created."""
        client = self.session.client("sqs")
        pages = client.get_paginator("list_queues").paginate(PaginationConfig={"PageSize": 1000})
        return _kept([url for page in pages for url in page.get("QueueUrls", ())], partial(self._queue, client))

    def users(self) -> Sequence[Item]:
        """Return the IAM users of the exchange."""
        client = self.session.client("iam")
        pages = client.get_paginator("list_users").paginate(PathPrefix=USER_PATH)
        return _kept([one["UserName"] for page in pages for one in page["Users"]], partial(self._user, client))

    def log_groups(self) -> Iterator[Item]:
        """Yield the log groups of the stage's jobs, which Glue may have made."""
        pages = self.session.client("logs").get_paginator("describe_log_groups")
        for page in pages.paginate(logGroupNamePrefix=job_log_prefix(self.stage)):
            yield from (Item(Kind.LOG_GROUP, one["logGroupName"], one["logGroupName"]) for one in page["logGroups"])

    def data(self, state: Stack | None) -> Iterator[Item]:
        """Yield the state stack with its tables, bucket, secrets and keys."""
        if state is None:
            return
        for resource in self._resources(state.name):
            kind = DATA_TYPES.get(resource["ResourceType"])
            if kind is not None and resource.get("ResourceStatus") != GONE:
                identifier = resource["PhysicalResourceId"]
                yield Item(kind, f"{resource['LogicalResourceId']} {identifier}", identifier)
        yield Item(Kind.STATE_STACK, state.name, state.name)

    def _stack(self, name: str) -> Stack | None:
        found = found_stack(self.session.client("cloudformation"), name)
        if found is None or found["StackStatus"] == GONE:
            return None
        return Stack(name, found["StackId"], outputs_of(found))

    def _require_tag(self, stack: Stack) -> None:
        # The CDK tags the resources of a stage's stacks, not the stacks themselves.
        template: Any = self.session.client("cloudformation").get_template(StackName=stack.name)["TemplateBody"]
        resources = (json.loads(template) if isinstance(template, str) else template)["Resources"].values()
        if not any(_tags(one).get(STAGE_TAG) == self.stage for one in resources):
            raise RejectedError(
                f"stack {stack.name!r} is no stage of Signalbox (no resource has the tag {STAGE_TAG}={self.stage}): "
                "nothing is removed; give the stage's own name"
            )

    def _resources(self, stack: str) -> Iterator[Mapping[str, Any]]:
        pages = self.session.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
        for page in pages:
            yield from page["StackResourceSummaries"]

    def _mapping(self, client: Any, mapping: Mapping[str, Any]) -> Item | None:  # noqa: ANN401 - boto3's
        queue, identifier = mapping["EventSourceArn"].rpartition(":")[2], mapping["UUID"]
        account = mapping["EventSourceArn"].rpartition(":")[0].replace(":sqs:", ":lambda:")
        try:
            tags = client.list_tags(Resource=f"{account}:event-source-mapping:{identifier}").get("Tags", {})
        except client.exceptions.ResourceNotFoundException:
            return None
        if not is_created_at_run_time(tags, stage=self.stage):
            return None
        function = mapping.get("FunctionArn", "").rpartition(":")[2]
        return Item(Kind.MAPPING, f"{queue} to {function}", identifier)

    def _queue(self, client: Any, url: str) -> Item | None:  # noqa: ANN401 - boto3's
        try:
            tags = self.tag_calls.tags(client, url)
            if not is_created_at_run_time(tags, stage=self.stage):
                return None
            found = client.get_queue_attributes(QueueUrl=url, AttributeNames=[WAITING])["Attributes"]
        except client.exceptions.QueueDoesNotExist:
            return None
        waiting = int(found[WAITING])
        return Item(Kind.QUEUE, url.rpartition("/")[2], url, f"about {waiting} messages are lost" if waiting else "")

    def _user(self, client: Any, name: str) -> Item | None:  # noqa: ANN401 - boto3's
        try:
            tags = {tag["Key"]: tag["Value"] for tag in client.list_user_tags(UserName=name)["Tags"]}
        except client.exceptions.NoSuchEntityException:
            return None
        is_ours = tags.get(STAGE_TAG) == self.stage and CAPABILITY_TAG in tags
        return Item(Kind.USER, name, name, "with its access keys") if is_ours else None


def _tags(resource: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the tags of a resource in a template, which has them as a list or as a map."""
    tags = resource.get("Properties", {}).get("Tags", {})
    return tags if isinstance(tags, Mapping) else {tag["Key"]: tag["Value"] for tag in tags}


def _kept(values: Iterable[Value], item: Callable[[Value], Item | None]) -> list[Item]:
    with ThreadPoolExecutor(THREADS) as threads:
        return [found for found in threads.map(item, values) if found is not None]
