"""Names of users as arguments of a command, or in a file with comma-separated values."""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from signalbox.cli.shared.files import read_text
from signalbox.errors import RejectedError
from signalbox.sarracenia.rights.names import InvalidUserName, UserName, parse_user_name
from signalbox.sarracenia.rights.permissions import Role

USER, ROLE = "user", "role"
HEADER = f"expected a header with the column {USER!r}, and optionally {ROLE!r}"

Names = Annotated[list[str] | None, typer.Argument(help="Names of users.", metavar="NAME...", show_default=False)]
Source = Annotated[
    Path | None,
    typer.Option(
        "--from",
        help=f"CSV file with the column {USER!r}, and optionally {ROLE!r}; - for standard input.",
        metavar="FILE",
    ),
]


class InvalidUserFile(RejectedError):
    """Raised when a file of users, or the names of a command, cannot be read; the text has every problem."""


@dataclass(frozen=True, slots=True)
class NamedUser:
    """A user's name, and the role if the file has one."""

    name: UserName
    role: Role | None = None


def named_users(names: Sequence[str], source: Path | None) -> list[NamedUser]:
    """Return the users of the arguments, then those of the file. Raises `InvalidUserName` and `InvalidUserFile`."""
    found = [NamedUser(parse_user_name(name)) for name in names]
    if source is not None:
        found += _in_file(read_text(source))
    repeated = [str(name) for name, count in Counter(one.name for one in found).items() if count > 1]
    if repeated:
        raise InvalidUserFile(f"users are named more than once: {', '.join(repeated)}")
    if not found:
        raise InvalidUserFile("no user is named: give names, or a file with --from")
    return found


def _in_file(text: str) -> Iterator[NamedUser]:
    rows = csv.DictReader(text.removeprefix("\ufeff").splitlines(), skipinitialspace=True)
    columns = rows.fieldnames or []
    if USER not in columns or set(columns) - {USER, ROLE}:
        raise InvalidUserFile(f"{HEADER}, not {','.join(columns)!r}")
    found, problems = [], []
    for row in rows:
        try:
            found.append(_named(row))
        except (InvalidUserName, InvalidUserFile) as error:
            problems.append(f"line {rows.line_num}: {error}")
    if problems:
        raise InvalidUserFile("\n".join(problems))
    yield from found


def _named(row: dict[str, str]) -> NamedUser:
    if set(row) - {USER, ROLE}:
        raise InvalidUserFile("there are more values than columns")
    role = (row.get(ROLE) or "").strip()
    if role and role not in set(Role):
        raise InvalidUserFile(f"role {role!r}: expected one of {', '.join(Role)}")
    return NamedUser(parse_user_name((row[USER] or "").strip()), Role(role) if role else None)
