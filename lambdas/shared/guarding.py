"""The daily restriction of queues to their sources, with its log lines."""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lambdas.shared.threads import parallel_map
from signalbox.redrive import RedriveGuard

if TYPE_CHECKING:
    from signalbox.queues import QueueName
    from signalbox.redrive import RedrivePolicies

logger = logging.getLogger(__name__)


def restrict(policies: "RedrivePolicies", sources: "Mapping[QueueName, Sequence[QueueName]]") -> None:
    """Restrict queues, also those made before, to the sources of each."""
    for guarded in RedriveGuard(policies, parallel_map).restrict_all(sources):
        for remark in guarded.remarks():
            logger.warning("%s", remark)
