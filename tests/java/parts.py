"""DynamoDB Local and ElasticMQ, with which adapters are tested as they are with moto."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import boto3

from tests.java.servers import Server

ACCOUNT, REGION = "123456789012", "us-east-1"  # moto's account
DYNAMODB = Server("dynamodb-local", "48 MB", "com.amazonaws.services.dynamodbv2.local.main.ServerRunner")
IN_MEMORY = ("-inMemory", "-disableTelemetry", "-port", "{port}")
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


@contextmanager
def running(folder: Path) -> Iterator[dict[str, str]]:
    """Run both servers and yield the variables that direct boto3's clients to them."""
    settings = [f"-D{key}={value}" for key, value in ELASTICMQ_SETTINGS.items()]
    with ExitStack() as stack:
        tables = stack.enter_context(DYNAMODB.running((), IN_MEMORY, log=folder / "dynamodb-local.log"))
        queues = stack.enter_context(ELASTICMQ.running(settings, (), log=folder / "elasticmq.log"))
        yield {"AWS_ENDPOINT_URL_DYNAMODB": tables, "AWS_ENDPOINT_URL_SQS": queues}


def clear() -> None:
    """Delete all tables and queues of the servers that the environment names."""
    tables, queues = (boto3.client(service) for service in ("dynamodb", "sqs"))
    for name in tables.list_tables()["TableNames"]:
        tables.delete_table(TableName=name)
    for url in queues.list_queues().get("QueueUrls", []):
        queues.delete_queue(QueueUrl=url)
