"""A stage of splitting without history."""

from datetime import date

import pytest

from signalbox.splitting.control.ports import NoAuditTrail, NothingRecorded


def test_an_audit_is_refused():
    with pytest.raises(NothingRecorded, match="records no events"):
        NoAuditTrail().events("m-1", since=date(2026, 11, 26))
