"""Who may do what to which exchanges and queues: all told by their names."""

from enum import StrEnum
from fnmatch import fnmatchcase

from signalbox.queues import FIFO_SUFFIX
from signalbox.sarracenia.rights.names import UserName, readable_name


class Role(StrEnum):
    """What a user is to the broker."""

    ADMIN = "admin"
    FEEDER = "feeder"
    SOURCE = "source"
    SUBSCRIBER = "subscriber"


class Right(StrEnum):
    """A right of AMQP: configure to declare and delete, write to publish and to bind a queue, read for the rest."""

    CONFIGURE = "configure"
    WRITE = "write"
    READ = "read"


class Ownership(StrEnum):
    """How names tell their owner: `LOOSE` is Sarracenia's own rule, by which `alice` owns what is `alice2`'s."""

    STRICT = "strict"
    LOOSE = "loose"


ALL = ("*",)
# USER is a user's name, and a name that begins with it; EXACT is the name alone.
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
    """Return patterns of the names to which a user has a right; `*` is any text, as in a policy of IAM.

    They are meant for names in the characters of SQS, without `.fifo`.
    """
    return tuple(
        pattern for kind in PERMISSIONS[role][right] for pattern in _patterns(kind, user=user, ownership=ownership)
    )


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
    """Say whether a user has a right to an exchange or queue."""
    readable = readable_name(name.removesuffix(FIFO_SUFFIX))
    patterns = permitted_names(user, role, right, ownership=ownership)
    return any(fnmatchcase(readable, pattern) for pattern in patterns)
