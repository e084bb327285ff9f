"""Lambda functions on moto: a consumer of a queue, and mappings that change their state with a delay."""

from dataclasses import dataclass, field

import boto3
from botocore.exceptions import ClientError

from signalbox.queues import QueueName
from tests.adapters.shared import stubs

NAME, ROLE = "meme-app", "meme-role"
ACCOUNT_PREFIX = "arn:aws:sqs:us-east-1:123456789012:"
SETTINGS = {
    "BatchSize": 7,
    "MaximumBatchingWindowInSeconds": 3,
    "FilterCriteria": {"Filters": [{"Pattern": '{"body": {"kind": ["meme"]}}'}]},
    "ScalingConfig": {"MaximumConcurrency": 5},
    "FunctionResponseTypes": ["ReportBatchItemFailures"],
    "MetricsConfig": {"Metrics": ["EventCount"]},
    "KMSKeyArn": "arn:aws:kms:us-east-1:123456789012:key/1",
}


def function(name: str = NAME, *, policy: dict[str, object] | None = None, **variables: str) -> str:
    """Create a function whose role is `meme-role`, and return its ARN."""
    return stubs.function(name, role_name=ROLE, policy=policy, variables=variables)


def queue(name: str, **attributes: str) -> str:
    url = boto3.client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return str(url)


def mapping(source: str = "memes", *, to: str = NAME, **settings: object) -> str:
    made = boto3.client("lambda").create_event_source_mapping(
        EventSourceArn=ACCOUNT_PREFIX + source, FunctionName=to, **settings
    )
    return str(made["UUID"])


def mappings(source: str) -> list[dict[str, object]]:
    """Return the mappings on a queue without the fields that are unique to each."""
    found = boto3.client("lambda").list_event_source_mappings(EventSourceArn=ACCOUNT_PREFIX + source)
    own = ("UUID", "EventSourceMappingArn", "LastModified", "EventSourceArn", "ResponseMetadata")
    return [{k: v for k, v in one.items() if k not in own} for one in found["EventSourceMappings"]]


def tags(source: str) -> dict[str, str]:
    """Return the tags of the one mapping on a queue."""
    client = boto3.client("lambda")
    found = client.list_event_source_mappings(EventSourceArn=ACCOUNT_PREFIX + source)["EventSourceMappings"]
    return dict(client.list_tags(Resource=found[0]["EventSourceMappingArn"])["Tags"])


@dataclass
class SlowMappings:
    """A Lambda client whose mappings reach their new states only at `settle`; it records every change."""

    client: object
    states: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    refusal: ClientError | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)

    def settle(self) -> None:
        self.states.clear()

    def create_event_source_mapping(self, **arguments: object) -> dict[str, object]:
        if self.refusal:
            raise self.refusal
        return self._changed("create", "Creating", self.client.create_event_source_mapping(**arguments))

    def update_event_source_mapping(self, **arguments: object) -> dict[str, object]:
        is_on = arguments["Enabled"]
        changed = self.client.update_event_source_mapping(**arguments)
        return self._changed("enable" if is_on else "disable", "Enabling" if is_on else "Disabling", changed)

    def delete_event_source_mapping(self, **arguments: object) -> dict[str, object]:
        return self._changed("delete", "Deleting", self.client.delete_event_source_mapping(**arguments))

    def get_paginator(self, name: str) -> "SlowMappings":
        return self

    def paginate(self, **arguments: object):
        for page in self.client.get_paginator("list_event_source_mappings").paginate(**arguments):
            found = page["EventSourceMappings"]
            yield {
                "EventSourceMappings": [one | {"State": self.states.get(one["UUID"], one["State"])} for one in found]
            }

    def _changed(self, call: str, state: str, mapping: dict[str, object]) -> dict[str, object]:
        self.calls.append(f"{call} {QueueName(mapping['EventSourceArn'].rpartition(':')[2])}")
        self.states[mapping["UUID"]] = state
        return mapping | {"State": state}
