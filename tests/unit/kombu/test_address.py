"""Broker URLs."""

import pytest
from kombu import Connection

from signalbox.errors import RejectedError
from signalbox.kombu.transport import Address


@pytest.mark.parametrize("url", ["signalbox://alice:secret@elsewhere", "signalbox://alice:secret@local/dev"])
def test_an_error_does_not_show_a_password(url: str) -> None:
    with pytest.raises(RejectedError, match="expected signalbox://") as caught:
        Address.of_connection(Connection(url, transport="signalbox.kombu.transport:Transport"))

    assert "secret" not in str(caught.value)
