"""Patches of MiniStack: one module for each, with its reason and the version and sources that it was written for."""

from signalbox.local.emulator.patches import (
    access_entries,
    account_root,
    attached_clusters,
    batch_permissions,
    cloudwatch_metrics,
    deduplication_ids,
    failed_starts,
    finished_logs,
    firehose_buffer,
    forked_functions,
    function_priority,
    message_senders,
    physical_names,
    poll_gaps,
    queue_locks,
    redrive_policies,
    repeated_deletions,
    service_deployments,
    service_permissions,
    shared_code,
    websocket_handshakes,
)
from signalbox.local.emulator.patches.patch import Patch


def patches(root_access_key_id: str) -> tuple[Patch, ...]:
    """Return all patches in the order in which they are applied.

    Those of `ministack.core.iam_evaluator` come first: the services copy its functions when they are imported.
    """
    return (
        account_root.patch(root_access_key_id),
        access_entries.PATCH,
        attached_clusters.PATCH,
        batch_permissions.PATCH,
        deduplication_ids.PATCH,
        failed_starts.PATCH,
        finished_logs.PATCH,
        firehose_buffer.PATCH,
        forked_functions.PATCH,
        function_priority.PATCH,  # of the processes that are forked
        message_senders.PATCH,
        physical_names.PATCH,
        poll_gaps.PATCH,
        queue_locks.PATCH,
        redrive_policies.PATCH,
        cloudwatch_metrics.PATCH,  # counts at the handlers that the locks leave
        repeated_deletions.PATCH,
        service_deployments.PATCH,
        service_permissions.PATCH,
        shared_code.PATCH,
        websocket_handshakes.PATCH,
    )
