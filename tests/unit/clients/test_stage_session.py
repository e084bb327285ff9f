"""Sessions of boto3."""

import pytest
from botocore.loaders import JSONFileLoader

from signalbox.clients.stage_session import LocalSession, new_session


def test_a_second_session_reads_no_description_of_a_service_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read, load = list[str](), JSONFileLoader.load_file
    new_session("key", "secret", region="us-east-1").client("sqs")
    monkeypatch.setattr(JSONFileLoader, "load_file", lambda self, path: read.append(path) or load(self, path))

    LocalSession("http://127.0.0.1:1", region="us-east-1", access_key_id="key", secret_access_key="s").client("sqs")

    assert read == []
