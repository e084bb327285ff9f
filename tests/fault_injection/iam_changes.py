"""Rule: changes of policies and new access keys of IAM count five seconds later.

MiniStack reads the policies of the moment. IAM's changes reach the services later.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from signalbox.local.emulator.patches.patch import Patch, original
from signalbox.local.emulator.program import ADMINISTRATOR
from tests.fault_injection.calls import Answer, Clock, Forward, ServiceCall

EVALUATOR = "ministack.core.iam_evaluator"
USER_POLICIES, ROLE_POLICIES = f"{EVALUATOR}:_gather_user_policies", f"{EVALUATOR}:_gather_role_policies"
AUTHENTICATE, FAILURE = f"{EVALUATOR}:authenticate", f"{EVALUATOR}:AuthError"
PRINCIPAL = f"{EVALUATOR}:resolve_principal"

PROPAGATION_SECONDS = 5.0

Policies = list[Any]
Principal = tuple[str, str]
"""Kind, `user` or `role`, and name."""


@dataclass(slots=True)
class IamChanges:
    """The policies before recent changes, and the access keys that are new."""

    clock: Clock
    current: Callable[[Principal], Policies]
    """Returns the policies of a user or role as IAM stores them."""
    _before: dict[Principal, list[tuple[float, Policies]]] = field(default_factory=dict)
    _known_from: dict[str, float] = field(default_factory=dict)

    async def answer(self, call: ServiceCall, forward: Forward) -> Answer:
        """Return IAM's answer, and note what a change replaces."""
        # The administrator's key and rights count at once.
        if call.service != "iam" or call.parameters.get("UserName") == ADMINISTRATOR:
            return await forward(call)
        principal = _changed(call)
        before = None if principal is None else self.current(principal)
        answer = await forward(call)
        if answer.is_success and principal is not None and before is not None:
            until = self.clock() + PROPAGATION_SECONDS
            self._before.setdefault(principal, []).append((until, before))
        if answer.is_success and call.action == "CreateAccessKey":
            self._known_from[_key_id(answer)] = self.clock() + PROPAGATION_SECONDS
        return answer

    def policies(self, principal: Principal, current: Policies) -> Policies:
        """Return the policies that count now: those before the oldest change that does not count yet."""
        changes = self._before.get(principal)
        if not changes:
            return current
        now = self.clock()
        return next((before for until, before in list(changes) if until > now), current)

    def is_unknown(self, access_key_id: str) -> bool:
        """Return whether the key is too new."""
        return self._known_from.get(access_key_id, float("-inf")) > self.clock()


def _changed(call: ServiceCall) -> Principal | None:
    """Return the user or role whose policies the call changes."""
    if not call.action.endswith(("Policy", "User", "Role", "UserToGroup", "UserFromGroup")):
        return None
    if call.action.startswith(("Get", "List", "Tag", "Untag", "Simulate")):
        return None
    for kind, parameter in (("user", "UserName"), ("role", "RoleName")):
        if call.parameters.get(parameter):
            return kind, str(call.parameters[parameter])
    return None


def _key_id(answer: Answer) -> str:
    found = ElementTree.fromstring(answer.body).find(".//{*}AccessKeyId")  # noqa: S314 - MiniStack's own answer
    return (found.text or "") if found is not None else ""


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

        def authenticate_known(access_key_id: str, account_id: str) -> Any:
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
