"""The wait of commands that take rights away by a write of their own."""

import time
from typing import TYPE_CHECKING

from signalbox.live.rights.settling import RIGHTS_SETTLE_SECONDS

if TYPE_CHECKING:
    from signalbox.aws.exchange.exchanges import DynamoUsers


def wait_until_rights_settle(users: "DynamoUsers") -> None:
    """Return when no function instance uses rights that it read before this call."""
    from signalbox.aws.exchange.counters import DynamoRightsVersion

    DynamoRightsVersion(users.table).increment()
    time.sleep(RIGHTS_SETTLE_SECONDS)
