"""Parts of the commands that change rights in realms: the check of a realm's name, and the result of a dry run."""

from collections.abc import Mapping
from typing import Any

from signalbox.cli.shared.output import print_line, print_table
from signalbox.errors import RejectedError
from signalbox.queues import FIFO_SUFFIX

EFFECTS = {
    "ends": "ends",
    "limits": "gets fewer topics",
    "permits": "gets more topics",
}


def check_realm(realm: str) -> None:
    """Raise `RejectedError` for an exchange that cannot be live."""
    if not realm.endswith(FIFO_SUFFIX):
        raise RejectedError(
            f"exchange {realm!r} cannot be live: names of live ones end with {FIFO_SUFFIX}, as {realm + FIFO_SUFFIX!r}"
        )


def print_dry_run(result: Mapping[str, Any]) -> None:
    """Print the subscriptions that a change would end, limit or widen."""
    found = result["subscriptions"]
    if not found:
        print_line("no present subscription would change")
        return
    rows = ([one["user"], str(one["session"]), one["match"], one["uri"], EFFECTS[one["effect"]]] for one in found)
    print_table(["user", "session", "match", "topics", "would be"], rows)
    if result["more"]:
        print_line(f"and {result['more']} more")
