"""Patch: permissions are checked with the policies of some seconds ago, and new access keys are not known.

MiniStack reads the policies of the moment. IAM's changes reach the services later.
"""

from collections.abc import Callable, Mapping
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original
from signalbox.local.emulator.weather.iam_changes import IamChanges, Policies

EVALUATOR = "ministack.core.iam_evaluator"
USER_POLICIES, ROLE_POLICIES = f"{EVALUATOR}:_gather_user_policies", f"{EVALUATOR}:_gather_role_policies"
AUTHENTICATE, FAILURE = f"{EVALUATOR}:authenticate", f"{EVALUATOR}:AuthError"
PRINCIPAL = f"{EVALUATOR}:resolve_principal"

Gather = Callable[[str, str], Policies]


def delayed(gather: Gather, changes: IamChanges, kind: str) -> Gather:
    """Return a `gather` of policies that returns those that count."""

    def gather_delayed(name: str, account_id: str) -> Policies:
        return changes.policies((kind, name), gather(name, account_id))

    return gather_delayed


def patch(changes: IamChanges) -> Patch:
    """Return the patch for these changes."""

    def replacements() -> Mapping[str, object]:
        authenticate, failure = original(AUTHENTICATE), original(FAILURE)

        def authenticate_known(access_key_id: str, account_id: str) -> Any:  # noqa: ANN401 - MiniStack's result
            if changes.is_unknown(access_key_id):
                return failure("InvalidClientTokenId", "The security token included in the request is invalid.")
            return authenticate(access_key_id, account_id)

        return {
            USER_POLICIES: delayed(original(USER_POLICIES), changes, "user"),
            ROLE_POLICIES: delayed(original(ROLE_POLICIES), changes, "role"),
            AUTHENTICATE: authenticate_known,
        }

    return Patch(
        sources={
            USER_POLICIES: "caba65a1aef75715",
            ROLE_POLICIES: "d83d1661b86595ac",
            AUTHENTICATE: "42c3660c401bdfa7",
            FAILURE: "b2f6d1552ce2cf9c",
            PRINCIPAL: "b6c6131e24bf22f0",
        },
        replacements=replacements,
    )
