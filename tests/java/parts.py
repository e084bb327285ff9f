"""DynamoDB Local and ElasticMQ, with which adapters are tested as they are with moto."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3

from tests.java.servers import Server

ACCOUNT, REGION = "123456789012", "us-east-1"  # moto's account
DYNAMODB = Server("dynamodb-local", "48 MB", "com.amazonaws.services.dynamodbv2.local.main.ServerRunner")
IN_MEMORY = ("-inMemory", "-sharedDb", "-disableTelemetry", "-port", "{port}")
ELASTICMQ = Server("elasticmq", "38 MB", "org.elasticmq.server.Main")
ELASTICMQ_SETTINGS = {
    "rest-sqs.bind-hostname": "127.0.0.1",
    "rest-sqs.bind-port": "{port}",
    "rest-sqs.sqs-limits": "strict",
    "rest-stats.enabled": "false",
    # URLs of queues are those of AWS, as moto's are.
    "generate-node-address": "false",
    "node-address.protocol": "https",
    "node-address.host": f"sqs.{REGION}.amazonaws.com",
    "node-address.port": "443",
    "aws.region": REGION,
    "aws.accountId": ACCOUNT,
}


CREDENTIALS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}


@dataclass(frozen=True)
class Parts:
    """Both servers, by the URLs that boto3 reads from variables."""

    variables: Mapping[str, str]

    @cached_property
    def tables(self) -> Any:
        return self._client("dynamodb")

    @cached_property
    def queues(self) -> Any:
        return self._client("sqs")

    def _client(self, service: str) -> Any:
        url = self.variables[f"AWS_ENDPOINT_URL_{service.upper()}"]
        return boto3.client(service, endpoint_url=url, region_name=REGION, **CREDENTIALS)

    def has_queue(self, name: str) -> bool:
        """Return whether ElasticMQ has a queue of this name."""
        urls = self.queues.list_queues(QueueNamePrefix=name).get("QueueUrls", [])
        return any(url.endswith(f"/{name}") for url in urls)

    def clear(self) -> None:
        """Delete all tables and queues."""
        for name in self.tables.list_tables()["TableNames"]:
            self.tables.delete_table(TableName=name)
        for url in self.queues.list_queues().get("QueueUrls", []):
            self.queues.delete_queue(QueueUrl=url)


@contextmanager
def running(folder: Path) -> Iterator[Parts]:
    """Run both servers, with their logs in a folder."""
    settings = [f"-D{key}={value}" for key, value in ELASTICMQ_SETTINGS.items()]
    with ExitStack() as stack:
        tables = stack.enter_context(DYNAMODB.running((), IN_MEMORY, log=folder / "dynamodb-local.log"))
        queues = stack.enter_context(ELASTICMQ.running(settings, (), log=folder / "elasticmq.log"))
        yield Parts({"AWS_ENDPOINT_URL_DYNAMODB": tables, "AWS_ENDPOINT_URL_SQS": queues})
