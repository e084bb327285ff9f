"""Patch: a message's `SenderId` is the id of the user, or of the role and its session, that sent it, as on AWS.

MiniStack sets the account's id, both for ReceiveMessage and in the events of functions.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

BUILD = "ministack.services.sqs:_build_send_sys_attrs"
RUN = "ministack.services.lambda_svc:_run_sqs_batch"
CALLER = "ministack.core.iam_evaluator:caller_arn"
USERS, ROLES = "ministack.services.iam:_users", "ministack.services.iam:_roles"

Event = MutableMapping[str, Any]


def with_senders(
    build: Callable[..., dict[str, str]],
    caller_arn: Callable[[], str],
    *,
    user_id: Callable[[str], str | None],
    role_id: Callable[[str], str | None],
) -> Callable[..., dict[str, str]]:
    """Return a `build` of a message's system attributes that sets `SenderId` for the caller.

    A user's is `AIDA…`, an assumed role's `AROA…:session`. Root's stays the account's id.
    """

    def sender_id() -> str | None:
        kind, _, name = caller_arn().rpartition(":")[2].partition("/")
        if kind == "user":
            return user_id(name.rpartition("/")[2])
        role, _, session = name.partition("/")
        found = role_id(role) if kind == "assumed-role" else None
        return found and f"{found}:{session}"

    def build_with_sender(*arguments: object) -> dict[str, str]:
        sender = sender_id()
        attributes = build(*arguments)
        return {**attributes, "SenderId": sender} if sender else attributes

    return build_with_sender


def with_senders_in_events(run: Callable[..., object]) -> Callable[..., object]:
    """Return a `run` of a function with messages that copies their senders into the records of the event."""

    def run_with_senders(
        mapping: object, function: object, event: Event, batch: Sequence[Event], *others: object, **named: object
    ) -> object:
        senders = {message["id"]: message["sys"]["SenderId"] for message in batch if "sys" in message}
        for record in event["Records"]:
            record["attributes"]["SenderId"] = senders.get(record["messageId"], record["attributes"]["SenderId"])
        return run(mapping, function, event, batch, *others, **named)

    return run_with_senders


def _id_of(name: str, entries: str, key: str) -> str | None:
    # Resolved for each message: MiniStack may replace its tables.
    entry: dict[str, str] = original(entries).get(name) or {}
    return entry.get(key)


def _replacements() -> Mapping[str, object]:
    build = with_senders(
        original(BUILD),
        original(CALLER),
        user_id=lambda name: _id_of(name, USERS, "UserId"),
        role_id=lambda name: _id_of(name, ROLES, "RoleId"),
    )
    return {BUILD: build, RUN: with_senders_in_events(original(RUN))}


PATCH = Patch(
    sources={
        BUILD: "d5f662692aea668e",
        RUN: "f9bf630aabf3d1b9",
        CALLER: "8dc478d34f4697cf",
    },
    replacements=_replacements,
)
