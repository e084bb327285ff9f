"""Templates as CloudFormation deploys them: with ARNs of a fixed account instead of intrinsic functions."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from tests.infrastructure.templates import Resource, Templates

ACCOUNT, REGION, PARTITION, STAGE = "123456789012", "us-east-1", "aws", "signalbox"
PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Region": REGION,
    "AWS::Partition": PARTITION,
    "AWS::URLSuffix": "amazonaws.com",
}
ROOT = f"arn:{PARTITION}:iam::{ACCOUNT}:root"
# The part of an ARN after the account, and the property that has the name, of each type that a policy names.
ARNS = {
    "AWS::SQS::Queue": ("sqs:{region}:{account}:{name}", "QueueName"),
    "AWS::DynamoDB::Table": ("dynamodb:{region}:{account}:table/{name}", "TableName"),
    "AWS::KMS::Key": ("kms:{region}:{account}:key/{name}", ""),
    "AWS::S3::Bucket": ("s3:::{name}", "BucketName"),
    "AWS::Lambda::Function": ("lambda:{region}:{account}:function:{name}", "FunctionName"),
    "AWS::Logs::LogGroup": ("logs:{region}:{account}:log-group:{name}:*", "LogGroupName"),
    "AWS::KinesisFirehose::DeliveryStream": ("firehose:{region}:{account}:deliverystream/{name}", "DeliveryStreamName"),
    "AWS::Scheduler::ScheduleGroup": ("scheduler:{region}:{account}:schedule-group/{name}", "Name"),
    "AWS::IAM::Role": ("iam::{account}:role/{name}", "RoleName"),
    "AWS::IAM::User": ("iam::{account}:user/{name}", "UserName"),
}
NAMES = {"AWS::Glue::Job": "Name", "AWS::Glue::Table": "TableInput.Name", "AWS::Glue::Database": "DatabaseInput.Name"}
Policy = dict[str, Any]


@dataclass(frozen=True)
class Account:
    """The resources and policies of both stacks in one account."""

    templates: Templates

    @cached_property
    def resources(self) -> dict[str, Resource]:
        return {**self.templates.state["Resources"], **self.templates.stage["Resources"]}

    @cached_property
    def arns(self) -> dict[str, str]:
        """Return the ARN of every resource that a policy may name, by construct path."""
        return {self.templates.names[key]: self.arn(key) for key, one in self.resources.items() if one["Type"] in ARNS}

    def arn(self, key: str) -> str:
        form, _ = ARNS[self.resources[key]["Type"]]
        return f"arn:{PARTITION}:" + form.format(region=REGION, account=ACCOUNT, name=self.name(key))

    def name(self, key: str) -> str:
        """Return the name in the template, or the one that CloudFormation generates from stack and logical id."""
        resource = self.resources[key]
        path = NAMES.get(resource["Type"]) or ARNS.get(resource["Type"], ("", ""))[1]
        if resource["Type"] == "AWS::KMS::Key":
            return str(uuid5(NAMESPACE_DNS, key))
        value: Any = resource.get("Properties", {})
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        name = self.text(value) if value else f"{STAGE}-{key}"
        return name.lower() if resource["Type"] == "AWS::S3::Bucket" else name

    def value(self, value: object) -> Any:
        """Return a part of a template without intrinsic functions."""
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, Mapping):
            if len(value) == 1 and (next(iter(value)) == "Ref" or next(iter(value)).startswith("Fn::")):
                return self.text(value)
            return {key: self.value(one) for key, one in value.items()}
        return value

    def text(self, value: object) -> str:
        if isinstance(value, str):
            return value
        assert isinstance(value, Mapping), value
        ((function, argument),) = value.items()
        return str(getattr(self, "_" + function.removeprefix("Fn::").lower())(argument))

    def _join(self, argument: list[Any]) -> str:
        return str(argument[0]).join(self.text(part) for part in argument[1])

    def _sub(self, argument: str) -> str:
        return re.sub(r"\$\{(.*?)\}", lambda found: self._ref(found[1]), argument)

    def _ref(self, key: str) -> str:
        if key in PSEUDO:
            return PSEUDO[key]
        return self.name(key)

    def _getatt(self, argument: list[str]) -> str:
        assert argument[1] == "Arn", argument
        return self.arn(argument[0])

    def _importvalue(self, argument: str) -> str:
        exports = {
            one["Export"]["Name"]: one["Value"] for one in self.templates.state["Outputs"].values() if "Export" in one
        }
        return self.text(exports[argument])

    def identity_policies(self) -> dict[str, list[Policy]]:
        """Return the policies of every role, user and managed policy, by construct path."""
        found: dict[str, list[Policy]] = defaultdict(list)
        for policy in self.templates.every("AWS::IAM::Policy").values():
            properties = policy["Properties"]
            for identity in (*properties.get("Roles", ()), *properties.get("Users", ())):
                found[self.templates.names[identity["Ref"]]].append(self.value(properties["PolicyDocument"]))
        for name, policy in self.templates.every("AWS::IAM::ManagedPolicy").items():
            found[name].append(self.value(policy["Properties"]["PolicyDocument"]))
        return dict(found)

    def resource_policies(self) -> dict[str, Policy]:
        """Return the policies of queues, keys and the bucket, by the ARN of their resource."""
        return dict(self._resource_policies())

    def _resource_policies(self) -> Iterator[tuple[str, Policy]]:
        for policy in self.templates.every("AWS::SQS::QueuePolicy").values():
            for queue in policy["Properties"]["Queues"]:
                yield self.arn(queue["Ref"]), self.value(policy["Properties"]["PolicyDocument"])
        for policy in self.templates.every("AWS::S3::BucketPolicy").values():
            yield self.arn(policy["Properties"]["Bucket"]["Ref"]), self.value(policy["Properties"]["PolicyDocument"])
        for name, key in self.templates.every("AWS::KMS::Key").items():
            yield self.arns[name], self.value(key["Properties"]["KeyPolicy"])

    def trust_policies(self) -> dict[str, Policy]:
        """Return who may assume each role, by construct path."""
        roles = self.templates.every("AWS::IAM::Role").items()
        return {name: self.value(role["Properties"]["AssumeRolePolicyDocument"]) for name, role in roles}
