"""The queues and exchanges of earlier users of a name, which the next user of the name would own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from signalbox.cli.shared.confirmation import confirm

if TYPE_CHECKING:
    from signalbox.aws.exchange.users import ExchangeUsers
    from signalbox.sarracenia.rights.names import UserName
    from signalbox.sarracenia.rights.permissions import Ownership

SHOWN = 10


def confirm_ownership(
    identities: "ExchangeUsers", names: Sequence["UserName"], ownership: "Ownership", *, yes: bool, as_json: bool
) -> None:
    """Ask before new users get what exists in their names; do not ask if there is nothing. Raises `RejectedError`."""
    found = identities.owned(names, ownership) if names else ()
    if not found:
        return
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    question = (
        f"{', '.join(found[:SHOWN])}{more} would belong to the new user, with all messages and events that an earlier "
        "user of the name has left there. Delete them before by `signalbox queue delete` and `signalbox exchange "
        "delete`, and in SQS those with -dlq. Add the user nevertheless?"
    )
    confirm(question, yes=yes, as_json=as_json)
