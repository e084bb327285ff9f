"""Patch: deployments of ECS services as on AWS, with tasks that are records.

- No container is started, also where there is a Docker: a test that plays the tasks reads their definitions.
- A new deployment is `IN_PROGRESS`, with the old and the new tasks running, until it is `COMPLETED` a second later and
  the old tasks stop. Without containers, MiniStack completes it within `UpdateService`. (API_Deployment,
  `rolloutState`: it begins as IN_PROGRESS and becomes COMPLETED in a steady state; API_UpdateService, `taskDefinition`:
  a task is started, and then an old one is stopped.)
- The name of a family is its newest active revision, and not its newest (API_DescribeTaskDefinition).
"""

from collections.abc import Callable, Mapping
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

ECS = "ministack.services.ecs"
DOCKER = f"{ECS}:_get_docker"
COMPLETE = f"{ECS}:_complete_service_deployment"
SCHEDULE = f"{ECS}:_schedule_service_deployment_completion"
RECONCILE = f"{ECS}:_reconcile_service_tasks"
RESOLVE = f"{ECS}:_resolve_td_key"
DEFINITIONS = f"{ECS}:_task_defs"
ACCOUNT_ID, REGION = "ministack.core.responses:get_account_id", "ministack.core.responses:get_region"

Document = Mapping[str, Any]
Definitions = Mapping[str, Document]
"""The task definitions by `family:revision`."""


def completing_later(
    complete: Callable[..., None],
    schedule: Callable[..., None],
    account_id: Callable[[], str],
    region: Callable[[], str],
) -> Callable[..., None]:
    """Return a `complete` that completes a deployment only when it is called for it, which `schedule` does later."""

    def complete_later(cluster: str, service: str, expected_deployment_id: str | None = None) -> None:
        if expected_deployment_id is None:
            schedule(cluster, service, account_id(), region())
        else:
            complete(cluster, service, expected_deployment_id=expected_deployment_id)

    return complete_later


def naming_active_revisions(
    resolve: Callable[[str], str | None], definitions: Definitions
) -> Callable[[str], str | None]:
    """Return a `resolve` for which the name of a family is its newest active revision."""

    def key(reference: str) -> str | None:
        family = reference.rpartition("/")[2]
        if ":" in family:
            return resolve(reference)
        revisions = [
            one["revision"] for one in definitions.values() if one["family"] == family and one["status"] == "ACTIVE"
        ]
        return f"{family}:{max(revisions)}" if revisions else family

    return key


def _replacements() -> Mapping[str, object]:
    resolve = naming_active_revisions(original(RESOLVE), original(DEFINITIONS))
    later = completing_later(original(COMPLETE), original(SCHEDULE), original(ACCOUNT_ID), original(REGION))
    return {DOCKER: lambda: None, COMPLETE: later, RESOLVE: resolve}


PATCH = Patch(
    sources={
        DOCKER: "a161d31a7eef7c5c",
        COMPLETE: "4472ae6823d0709f",
        SCHEDULE: "938eb06d6faf2fff",
        RECONCILE: "16e4d03cbf75322f",
        RESOLVE: "0cd4ac5c23cebae6",
    },
    replacements=_replacements,
)
