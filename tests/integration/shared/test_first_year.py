"""The backups of docs/first-year.md on a stage: a deleted table is restored, and all is there."""

from dataclasses import dataclass
from typing import Any

import pytest

from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

SECONDS = 60


@dataclass(frozen=True)
class Resources:
    """What an administrator sees of the exchange."""

    exchanges: Any
    queues: Any
    bindings: Any

    @classmethod
    def of(cls, client: ExchangeClient) -> "Resources":
        return cls(client.exchanges(), client.queues(), client.ask("bindings"))


def queued(client: ExchangeClient) -> int:
    status: Any = client.ask("status", {"names": ["q_backup"]})
    return int(status["queues"][0]["queued"])


def test_a_deleted_table_is_restored_with_all_exchanges_queues_and_bindings(deployment: Deployment):
    dynamodb, table = deployment.session().client("dynamodb"), deployment.outputs["ExchangeTable"]
    client = client_of(deployment)
    client.declare_exchange("xbackup")
    client.declare_queue("q_backup")
    client.bind("xbackup", "q_backup", "backup.#")
    before = Resources.of(client)
    backup = dynamodb.create_backup(TableName=table, BackupName="before")["BackupDetails"]["BackupArn"]
    dynamodb.delete_table(TableName=table)
    dynamodb.get_waiter("table_not_exists").wait(TableName=table)

    dynamodb.restore_table_from_backup(BackupArn=backup, TargetTableName=table)
    dynamodb.get_waiter("table_exists").wait(TableName=table)
    dynamodb.update_time_to_live(
        TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires_at"}
    )

    assert Resources.of(client) == before
    client.publish("xbackup", "backup.restored", "still routed")
    wait_for(lambda: queued(client), "a copy in the queue", seconds=SECONDS)
    client.delete_exchange("xbackup", force=True)
    client.delete_queue("q_backup")
