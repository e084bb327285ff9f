"""The stages of other regions with which a stage shares its proxies, as the setting `rendezvous_peers` names them."""

from typing import NamedTuple

# The form of signalbox/rendezvous/rules/peer_address.py; a test compares them.
FIELDS = 6
PEER = ":".join([r"[A-Za-z0-9._-]+"] * FIELDS)


class RendezvousPeer(NamedTuple):
    """The names of a peer's resources, which are in the same account."""

    region: str
    stage: str
    table: str
    key_id: str
    broker_queue: str
    client_queue_prefix: str

    @property
    def table_arn(self) -> str:
        """The ARN of the table of offers."""
        return self._arn("dynamodb", f"table/{self.table}")

    @property
    def key_arn(self) -> str:
        """The ARN of the key of that table."""
        return self._arn("kms", f"key/{self.key_id}")

    @property
    def broker_arn(self) -> str:
        """The ARN of the broker queue."""
        return self._arn("sqs", self.broker_queue)

    @property
    def clients_arn(self) -> str:
        """The ARN of all client queues."""
        return self._arn("sqs", f"{self.client_queue_prefix}*")

    def _arn(self, service: str, resource: str) -> str:
        # Here, since it starts a Node: tests on a stage read the settings only.
        from aws_cdk import Aws  # noqa: PLC0415

        return f"arn:{Aws.PARTITION}:{service}:{self.region}:{Aws.ACCOUNT_ID}:{resource}"
