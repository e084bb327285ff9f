"""The daily restriction of queues to their sources, with its log lines."""

import logging
from collections.abc import Mapping, Sequence

from lambdas.shared.threads import parallel_map
from signalbox.queues import QueueName
from signalbox.redrive import RedriveGuard, RedrivePolicies
from signalbox.task_time import TaskTime

logger = logging.getLogger(__name__)


def restrict(policies: RedrivePolicies, sources: Mapping[QueueName, Sequence[QueueName]], time: TaskTime) -> None:
    """Allow each queue, new or existing, to be the dead-letter queue of its `sources` alone."""
    for part in time.parts(sources.items()):
        for guarded in RedriveGuard(policies, parallel_map).restrict_all(dict(part)):
            for remark in guarded.remarks():
                logger.warning("%s", remark)
