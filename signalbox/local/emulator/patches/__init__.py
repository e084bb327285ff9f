"""Patches of MiniStack: one module for each, with its reason and the sources that it was written for."""

from signalbox.local.emulator.patches import (
    access_entries,
    account_root,
    anonymous_callers,
    attached_clusters,
    batch_permissions,
    cloudwatch_metrics,
    deleted_log_groups,
    failed_starts,
    firehose_buffer,
    forked_functions,
    message_senders,
    physical_names,
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
        anonymous_callers.PATCH,
        access_entries.PATCH,
        attached_clusters.PATCH,
        batch_permissions.PATCH,
        failed_starts.PATCH,
        firehose_buffer.PATCH,
        forked_functions.PATCH,
        message_senders.PATCH,
        physical_names.PATCH,
        queue_locks.PATCH,
        redrive_policies.PATCH,
        cloudwatch_metrics.PATCH,  # counts at the handlers that the locks leave
        deleted_log_groups.PATCH,
        repeated_deletions.PATCH,
        service_deployments.PATCH,
        service_permissions.PATCH,
        shared_code.PATCH,
        websocket_handshakes.PATCH,
    )
