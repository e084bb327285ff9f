"""MiniStack's well-known keys are not the account's root."""

import pytest
from botocore.exceptions import ClientError

from signalbox.clients.stage_session import LocalSession

pytestmark = [pytest.mark.emulator, pytest.mark.release]


@pytest.mark.parametrize("key_id", ["test", "000000000000", "111122223333"])
@pytest.mark.parametrize(
    ("service", "operation"), [("s3", "list_buckets"), ("sqs", "list_queues"), ("iam", "list_users")]
)
def test_well_known_keys_are_refused(running, key_id, service, operation):
    session = LocalSession(running.endpoint_url, region="us-east-1", access_key_id=key_id, secret_access_key="test")

    with pytest.raises(ClientError, match=r"InvalidAccessKeyId|InvalidClientTokenId"):
        getattr(session.client(service), operation)()
