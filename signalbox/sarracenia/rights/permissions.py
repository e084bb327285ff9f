"""Permissions of users on exchanges and queues, derived from the names alone."""

from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase

from signalbox.queues import FIFO_SUFFIX
from signalbox.sarracenia.rights.names import UserName, readable_name


class Role(StrEnum):
    """A user's role."""

    ADMIN = "admin"
    FEEDER = "feeder"
    SOURCE = "source"
    SUBSCRIBER = "subscriber"


class Right(StrEnum):
    """A right of AMQP: `configure` to declare and delete, `write` to publish and bind queues, `read` for the rest."""

    CONFIGURE = "configure"
    WRITE = "write"
    READ = "read"


class Ownership(StrEnum):
    """The rule that derives the owner from a name: in `LOOSE`, Sarracenia's own, `alice` also owns `xs_alice2`."""

    STRICT = "strict"
    LOOSE = "loose"


ALL = ("*",)
# USER is a user's name or a name that begins with it; EXACT is the name only.
OWN_QUEUES, OWN_EXCHANGES = ("q_USER",), ("xs_USER",)
READABLE = (*OWN_QUEUES, "xl_USER", "xr_USER", *OWN_EXCHANGES, "PUBLIC")
PERMISSIONS: dict[Role, dict[Right, tuple[str, ...]]] = {
    Role.ADMIN: dict.fromkeys(Right, ALL),
    Role.FEEDER: dict.fromkeys(Right, ALL),
    Role.SOURCE: {
        Right.CONFIGURE: (*OWN_QUEUES, *OWN_EXCHANGES),
        Right.WRITE: (*OWN_QUEUES, *OWN_EXCHANGES),
        Right.READ: READABLE,
    },
    Role.SUBSCRIBER: {
        Right.CONFIGURE: OWN_QUEUES,
        Right.WRITE: (*OWN_QUEUES, "xs_EXACT"),
        Right.READ: READABLE,
    },
}
PUBLIC = {Ownership.STRICT: ("xpublic", "x*_public"), Ownership.LOOSE: ("x*public",)}


def permitted_names(
    user: UserName, role: Role, right: Right, *, ownership: Ownership = Ownership.STRICT
) -> tuple[str, ...]:
    """Return patterns of the names on which a user has a right; `*` matches any text, as in IAM policies.

    The patterns apply to SQS names without `.fifo`.
    """
    return tuple(
        pattern for kind in PERMISSIONS[role][right] for pattern in _patterns(kind, user=user, ownership=ownership)
    )


def permitted_beginnings(
    user: UserName, role: Role, right: Right, *, ownership: Ownership = Ownership.STRICT
) -> list[str]:
    """Return beginnings of the names on which a user has a right, and of some others: what a list has to read.

    A pattern may have `_` and `-` for characters that SQS does not allow, after the user's name and within it.
    """
    patterns = permitted_names(user, role, right, ownership=ownership)
    return shortest(pattern.partition("*")[0].rstrip("_").partition("-")[0] for pattern in patterns)


def shortest(beginnings: Iterable[str]) -> list[str]:
    """Return beginnings of names, sorted, without those that begin with another of them."""
    found: list[str] = []
    for one in sorted(beginnings):
        if not found or not one.startswith(found[-1]):
            found.append(one)
    return found


def role_rights(role: Role, name: str) -> frozenset[Right]:
    """Return the rights on an exchange that a role gives to users who own nothing by their name."""
    readable = readable_name(name.removesuffix(FIFO_SUFFIX))
    return frozenset(
        right
        for right, kinds in PERMISSIONS[role].items()
        if any(fnmatchcase(readable, pattern) for kind in kinds for pattern in _patterns_for_all(kind))
    )


def _patterns_for_all(kind: str) -> tuple[str, ...]:
    if kind == "PUBLIC":
        return PUBLIC[Ownership.STRICT]
    return () if kind.endswith(("USER", "EXACT")) else (kind,)


def _patterns(kind: str, *, user: UserName, ownership: Ownership) -> tuple[str, ...]:
    if kind == "PUBLIC":
        return PUBLIC[ownership]
    if not kind.endswith("USER"):
        return (kind.replace("EXACT", user),)
    name = kind.replace("USER", user)
    return (name, f"{name}_*") if ownership == Ownership.STRICT else (f"{name}*",)


def is_permitted(
    user: UserName, role: Role, right: Right, *, name: str, ownership: Ownership = Ownership.STRICT
) -> bool:
    """Return whether a user has a right on an exchange or queue."""
    readable = readable_name(name.removesuffix(FIFO_SUFFIX))
    patterns = permitted_names(user, role, right, ownership=ownership)
    return any(fnmatchcase(readable, pattern) for pattern in patterns)
