"""The wait of commands that take rights away by a write of their own."""

import time

from signalbox.live.admin.settling import RIGHTS_SETTLE_SECONDS


def wait_until_rights_settle() -> None:
    """Return when no function instance uses what it read about rights before this call."""
    time.sleep(RIGHTS_SETTLE_SECONDS)
