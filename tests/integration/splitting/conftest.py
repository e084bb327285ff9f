"""Fixtures of splitting on the deployed stage."""

from typing import Any

import pytest


@pytest.fixture
def environment(deployed: dict[str, Any]) -> dict[str, str]:
    """What a consumer of the local stage needs to find its queues."""
    key = deployed["admin_credentials"]
    return {
        "AWS_ENDPOINT_URL": deployed["endpoint_url"],
        "AWS_DEFAULT_REGION": deployed["region"],
        "AWS_ACCESS_KEY_ID": key["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": key["secret_access_key"],
    }
