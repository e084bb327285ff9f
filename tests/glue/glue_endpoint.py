"""An endpoint of AWS Glue on loopback for Java's clients: moto's catalog, called with boto3."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import boto3
from botocore import xform_name
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.fakes.http_endpoint import Handler, serving

REGION = "eu-central-1"


@contextmanager
def glue_endpoint() -> Iterator[str]:
    """Yield the URL of an empty catalog."""
    with mock_aws():
        glue = boto3.client("glue", region_name=REGION, aws_access_key_id="a", aws_secret_access_key="b")

        class Catalog(Handler):
            def respond(self) -> None:
                operation = xform_name(self.headers["X-Amz-Target"].rpartition(".")[2])
                request = json.loads(self.received())
                try:
                    status, answer = 200, getattr(glue, operation)(**request)
                except ClientError as error:
                    details = error.response["Error"]
                    status, answer = 400, {"__type": details["Code"], "Message": details["Message"]}
                answer.pop("ResponseMetadata", None)
                body = json.dumps(answer, default=datetime.timestamp)
                self.answer(body, status=status, headers={"Content-Type": "application/x-amz-json-1.1"})

        with serving(Catalog) as url:
            yield url
