"""The CloudFormation templates of a stage, with construct paths instead of CDK's logical ids."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aws_cdk import App

from app import build
from tests.sharing import SHARED

ROOT = Path(__file__).resolve().parents[2]
# Building the layer needs the network and several seconds; without it the templates are the same.
HERMETIC = {"aws:cdk:bundling-stacks": [], "aws:cdk:enable-path-metadata": True}
POLICIES = (
    *("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"),
    *("AWS::KMS::Key", "AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy"),
)
Resource = dict[str, Any]


@dataclass(frozen=True)
class Templates:
    """Both templates of a stage, queried as one."""

    state: Resource
    stage: Resource

    def every(self, kind: str) -> dict[str, Resource]:
        """Return all resources of a type by construct path."""
        found = {**self.state["Resources"], **self.stage["Resources"]}
        return {self.names[key]: resource for key, resource in found.items() if resource["Type"] == kind}

    @cached_property
    def names(self) -> dict[str, str]:
        """Return the construct path of every logical id, without the stack and the last `Resource`."""
        found = {**self.state["Resources"], **self.stage["Resources"]}
        return {key: _path(resource) for key, resource in found.items() if "Metadata" in resource}

    def statements(self) -> Iterator[tuple[str, Resource]]:
        """Yield every statement of every policy, after the construct path of the policy's resource."""
        for kind in POLICIES:
            for name, resource in self.every(kind).items():
                properties = resource["Properties"]
                document = properties.get("PolicyDocument") or properties["KeyPolicy"]
                yield from ((name, statement) for statement in document["Statement"])

    def text(self, value: object) -> str:
        """Return a template value as one text, with intrinsic functions resolved to construct paths."""
        if isinstance(value, str):
            return value
        assert isinstance(value, Mapping), value
        ((function, argument),) = value.items()
        if function == "Fn::Join":
            return argument[0].join(self.text(part) for part in argument[1])
        if function == "Fn::ImportValue":
            return self.names[re.sub(r".*ExportsOutput(?:Ref|FnGetAtt)(.*?)(?:Arn)?[0-9A-F]{8}$", r"\1", argument)]
        if function == "Ref":
            return self.names.get(argument, f"<{argument.removeprefix('AWS::')}>")
        if function == "Fn::Sub":
            return str(argument)
        assert function == "Fn::GetAtt", value
        return self.names[argument[0]]


# What is off by default and costs money.
EVERYTHING = {
    "every_alarm": "true",
    "dashboard": "true",
    "traces": "true",
    "history_interval_hours": "6",
    "rendezvous_doors": "url,api",
}


@cache
def templates(**settings: str | int) -> Templates:
    """Return the templates of a stage with these settings and the defaults for the others."""
    digest = sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return Templates(**json.loads(SHARED.get(f"{digest}.json", lambda: json.dumps(_synthesized(settings)))))


def _synthesized(settings: Mapping[str, str | int]) -> dict[str, Resource]:
    """Synthesize a stage.

    CDK's own validation of the templates, which takes two thirds of the time, is left to test_nag.py and cfn-lint.
    """
    with TemporaryDirectory() as folder:
        app = App(outdir=folder, context=context(**settings), builtin_cloud_formation_validation=False)
        state, stage = build(app)
        assembly = app.synth()
        found = [assembly.get_stack_by_name(stack.stack_name).template for stack in (state, stage)]
    return {"state": found[0], "stage": found[1]}


def context(**settings: object) -> dict[str, object]:
    """Return the context that the CDK CLI passes to the app, with bundling disabled."""
    return {**json.loads((ROOT / "cdk.json").read_text())["context"], **HERMETIC, **settings}


def as_list(value: object) -> list[Any]:
    """Return a policy element, which may be a single value or a list, as a list."""
    return value if isinstance(value, list) else [value]


def _path(resource: Resource) -> str:
    return resource["Metadata"]["aws:cdk:path"].split("/", 1)[1].removesuffix("/Resource")
