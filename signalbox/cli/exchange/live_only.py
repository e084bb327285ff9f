"""`signalbox user add --live`: users that only join realms are records, without an IAM identity and a control queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from signalbox.cli.shared import settling
from signalbox.cli.shared.confirmation import confirm
from signalbox.cli.shared.stage import say
from signalbox.cli.shared.user_keys import forget_user_key
from signalbox.exchange.model.records import User
from signalbox.sarracenia.rights.permissions import Ownership, Role

if TYPE_CHECKING:
    from signalbox.aws.exchange.exchanges import DynamoUsers
    from signalbox.aws.exchange.users import ExchangeUsers
    from signalbox.cli.exchange.user_files import NamedUser
    from signalbox.clients.deployment import Deployment
    from signalbox.sarracenia.rights.names import UserName


def confirm_ownership(
    identities: "ExchangeUsers", names: Sequence["UserName"], ownership: Ownership, *, yes: bool, as_json: bool
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


DEFAULT_ROLE = Role.SUBSCRIBER
SHOWN = 10


@dataclass(frozen=True, slots=True)
class LiveOnlyUsers:
    """Stores live-only users, and makes users with an IAM identity live-only."""

    deployment: "Deployment"
    identities: "ExchangeUsers"
    records: "DynamoUsers"

    def add(
        self, named: Sequence["NamedUser"], *, role: Role, ownership: Ownership, yes: bool, as_json: bool
    ) -> list[User]:
        """Store users and return them; ask before a user loses the IAM identity, or gets what an earlier one has left.

        An interrupted command is completed by repeating it. Raises `RejectedError` and `UnavailableError`.
        """
        for one in named:
            self.identities.control_queues.names.check_user(one.name)
        known, now = self.records.find_all(one.name for one in named), datetime.now(UTC)
        new = [one.name for one in named if one.name not in known]
        confirm_ownership(self.identities, new, ownership, yes=yes, as_json=as_json)
        users = [
            User(one.name, one.role or role, ownership, known[one.name].created_at if one.name in known else now, None)
            for one in named
        ]
        full = [user for user in users if user.name in known and not known[user.name].is_live_only]
        if full:
            self._confirm(full, yes=yes, as_json=as_json)

        for user in full:
            # The identity goes first: after an interruption, the record still leads to it.
            self.identities.remove(user.name)
            self.records.put(user)
            forget_user_key(self.deployment, user.name)
        self.records.put_live_only([user for user in users if user not in full])
        if any(user.name in known and _has_other_rights(user, known[user.name]) for user in users):
            settling.wait_until_rights_settle(self.records)
        self._report(known, full)
        return users

    def _confirm(self, full: Sequence[User], *, yes: bool, as_json: bool) -> None:
        names = ", ".join(map(repr, sorted(str(user.name) for user in full)[:SHOWN]))
        more = f" and {len(full) - SHOWN} more" if len(full) > SHOWN else ""
        question = (
            f"Delete the access keys and the control queue of {names}{more} of {self.deployment.place}? "
            "Programs that use them stop working; joined sessions continue."
        )
        confirm(question, yes=yes, as_json=as_json)

    def _report(self, known: "Mapping[UserName, User]", full: Sequence[User]) -> None:
        if full:
            say(f"{len(full)} lost the access keys and the control queue")
        if len(known) > len(full):
            say(f"{len(known) - len(full)} existed and were only changed")


def _has_other_rights(user: User, before: User) -> bool:
    return (user.role, user.ownership) != (before.role, before.ownership)


def live_only_document(user: User) -> dict[str, object]:
    """Return a live-only user as JSON."""
    return {"user": user.name, "role": user.role.value, "ownership": user.ownership.value, "live_only": True}
