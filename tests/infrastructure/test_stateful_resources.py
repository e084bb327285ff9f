"""Logical ids of stateful resources, which an update in place must keep.

CloudFormation deletes a resource whose logical id disappears from the template and creates another one. The golden file
is changed on purpose only: an entry is added for a new resource, and removed together with a migration of its data.
"""

import json
from pathlib import Path

from tests.infrastructure.templates import Resource, Templates

GOLDEN = Path(__file__).parent / "golden" / "stateful_resources.json"
STATEFUL = {
    "AWS::ApiGateway::RestApi",
    "AWS::ApiGatewayV2::Api",
    "AWS::DynamoDB::Table",
    "AWS::Glue::Database",
    "AWS::Glue::Table",
    "AWS::IAM::User",
    "AWS::KMS::Alias",
    "AWS::KMS::Key",
    "AWS::KinesisFirehose::DeliveryStream",
    "AWS::Lambda::Url",
    "AWS::S3::Bucket",
    "AWS::SQS::Queue",
}


def stateful(template: Resource) -> dict[str, str]:
    return {name: one["Type"] for name, one in template["Resources"].items() if one["Type"] in STATEFUL}


def test_stateful_resources_keep_their_logical_ids(stage: Templates) -> None:
    actual = {"state": stateful(stage.state), "stage": stateful(stage.stage)}

    assert actual == json.loads(GOLDEN.read_text())
