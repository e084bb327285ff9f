"""Checks of what an app gives to constructs. Each error names the property, what it expects and the remedy."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Any

# Resources of the app: an attribute of each, and how an existing one is imported.
RESOURCES: Mapping[str, tuple[str, str]] = {
    "encryption_key": ("key_arn", "kms.Key.from_key_arn"),
    "alarm_topic": ("topic_arn", "sns.Topic.from_topic_arn"),
    "permissions_boundary": ("managed_policy_arn", "iam.ManagedPolicy.from_managed_policy_arn"),
    "queue": ("queue_arn", "sqs.Queue.from_queue_arn"),
    "queues": ("queue_arn", "sqs.Queue.from_queue_arn"),
    "consumers": ("function_arn", "lambda_.Function.from_function_arn"),
}
# As the function `control` takes them; a test compares both.
EXCHANGE = re.compile(r"x[A-Za-z0-9_-]*")
USER = re.compile(r"(?i)(?!.*-dlq)(?!.*-exchange-(control|reply)$)[a-z0-9-]{1,32}", re.ASCII)
FINGERPRINT = re.compile(r"[0-9A-Fa-f]{40}|[0-9A-Fa-f]{64}")
BRIDGE = {"displayname", "websocketaddress", "fingerprint"}
PATTERN_BYTES, MANY = 255, 2
QUEUE_CHARACTERS = 80


def require_known(construct: str, given: Iterable[str], *, known: Iterable[str]) -> None:
    """Raise `TypeError` for a property that does not exist."""
    known = list(known)
    for name in given:
        if name not in known:
            nearest = get_close_matches(name, known, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"expected one of {', '.join(sorted(known))}"
            raise TypeError(f"{construct} has no property {name!r}: {hint}")


def require_resource(name: str, value: object) -> None:
    """Raise `ValueError` for a value that is no resource, such as a name or an ARN."""
    attribute, importing = RESOURCES[name]
    if not hasattr(value, attribute):
        raise ValueError(f"{name}: expected a resource of the CDK, not {value!r}: import an existing one: {importing}")


def require_resources(name: str, values: Any) -> None:  # noqa: ANN401 - what an app gives
    """Raise `ValueError` unless the value is a list of resources, and not an empty one."""
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise ValueError(f"{name}: expected a list with at least one resource, not {values!r}")
    for one in values:
        require_resource(name, one)


def require_truth(name: str, value: object) -> None:
    """Raise `ValueError` for a value that is neither True nor False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}: expected True or False, not {value!r}")  # noqa: TRY004 - one kind of error


def require_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise `ValueError` for a value that is not one of the choices."""
    choices = list(choices)
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(map(_shown, choices))}, not {_shown(value)}")


def require_exchange(name: str, *, prefix: str, ordered: bool) -> None:
    """Raise `ValueError` for an exchange's name that `control` would refuse."""
    room = QUEUE_CHARACTERS - len(prefix) - len(".fifo") * ordered
    if not EXCHANGE.fullmatch(name) or len(name) > room or "-dlq" in name:
        hint = "; `ordered` appends '.fifo'" if name.endswith(".fifo") else ""
        raise ValueError(
            f"exchange_name: expected 'x' and letters, digits, '-' and '_' without '-dlq', {room} characters at most, "
            f"not {name!r}{hint}"
        )


def require_pattern(pattern: str) -> None:
    """Raise `ValueError` for a binding's pattern that `control` would refuse."""
    if not isinstance(pattern, str) or not pattern or len(pattern.encode()) > PATTERN_BYTES:
        raise ValueError(
            f"pattern: expected 1 to {PATTERN_BYTES} bytes of words with dots, '*' for any word and '#' for any words, "
            f"not {pattern!r}"
        )
    if pattern.split(".").count("#") > MANY:
        raise ValueError(f"pattern: expected '#' {MANY} times at most, not {pattern!r}: bind several patterns instead")


def require_user(name: str, user: str) -> None:
    """Raise `ValueError` for a user's name that `control` would refuse."""
    if not USER.fullmatch(user):
        raise ValueError(
            f"{name}: expected the name of a user, 1 to 32 letters, digits and '-', not {user!r}; "
            "names with '-dlq', and with '-exchange-control' or '-exchange-reply' at the end, are reserved"
        )


def require_issuers(issuers: Any, *, required: Iterable[str], known: Iterable[str]) -> None:  # noqa: ANN401 - as above
    """Raise `ValueError` unless the value is a list of issuers with the fields that they need."""
    if not isinstance(issuers, Sequence):
        raise ValueError(f"issuers: expected a list, not {issuers!r}")  # noqa: TRY004 - as above
    for number, issuer in enumerate(issuers):
        require_known(f"issuers[{number}]", issuer, known=known)
        if missing := [name for name in required if not issuer.get(name)]:
            raise ValueError(f"issuers[{number}]: {' and '.join(missing)} must be given: docs/live.md describes them")


def require_bridges(path: Path) -> None:
    """Raise `ValueError` for a list with a line that the functions would refuse at their start."""
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), start=1):
        if not _is_bridge(line):
            raise ValueError(
                f"bridges: line {number} of {path}: expected a JSON object with the texts displayName, "
                "webSocketAddress and fingerprint, which has 40 or 64 hexadecimal digits"
            )


def _is_bridge(line: str) -> bool:
    try:
        fields = {name.lower(): value for name, value in json.loads(line).items()}
    except (ValueError, AttributeError, RecursionError):
        return False
    is_text = all(isinstance(value, str) for value in fields.values())
    return is_text and fields.keys() <= BRIDGE and FINGERPRINT.fullmatch(fields.get("fingerprint", "")) is not None


def _shown(value: object) -> str:
    return value.name if isinstance(value, Enum) else repr(value)
