"""Patch: a request without a key has the permissions that resource policies give to everyone.

MiniStack takes a missing key for root, so everyone may call every function URL, and `account_root` takes that away. AWS
calls a function by its URL only if the function's policy allows it to everyone.
"""

from collections.abc import Callable
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

RESOLVE = "ministack.core.iam_evaluator:resolve_principal"
PRINCIPAL = "ministack.core.iam_evaluator:PrincipalInfo"
ANONYMOUS = "anonymous"


def with_anonymous(resolve: Callable[..., object], principal: Callable[..., object]) -> Callable[..., object]:
    """Return a `resolve` that knows a caller without a key, who has no policies."""

    def resolve_or_anonymous(access_key_id: str, account_id: str, *credential: Any) -> object:  # noqa: ANN401 - MiniStack has no types
        if access_key_id or any(credential):
            return resolve(access_key_id, account_id, *credential)
        return principal(arn=ANONYMOUS, type=ANONYMOUS, account=account_id, policies=[])

    return resolve_or_anonymous


PATCH = Patch(
    sources={RESOLVE: "b6c6131e24bf22f0"},
    replacements=lambda: {RESOLVE: with_anonymous(original(RESOLVE), original(PRINCIPAL))},
)
