"""Names of users as arguments of a command."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from signalbox.errors import RejectedError
from signalbox.sarracenia.rights.names import UserName, parse_user_name

Names = Annotated[list[str] | None, typer.Argument(help="Names of users.", metavar="NAME...", show_default=False)]


def user_names(names: Sequence[str] | None) -> list[UserName]:
    """Return at least one name, each once. Raises `RejectedError`."""
    found = [parse_user_name(name) for name in names or ()]
    if repeated := [name for name, count in Counter(found).items() if count > 1]:
        raise RejectedError(f"users are named more than once: {', '.join(repeated)}")
    if not found:
        raise RejectedError("no user is named")
    return found
