"""The test vectors of WAMP's specification, as copied to `vectors.json`, which names their source.

Of the forms, `broker` has those that a JSON broker sends or receives, and `dealer` those that only a dealer and its
callees exchange. `router_link` are events forwarded by another router; they are parsed, since unknown options are
ignored. `unread` are refused: end-to-end encrypted payloads, and the
acknowledgement of an event, which has a provisional type code.

Of the options, `known` are those of the specification for PUBLISH, SUBSCRIBE and EVENT that are supported. `unknown`
are those of linked routers and of Autobahn, which are ignored. `malformed` belong to an encrypted payload.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VECTORS: Mapping[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())


@dataclass(frozen=True, slots=True)
class Form:
    """A message and its serializations, the last of them without spaces; `attributes` are its fields by name."""

    sample: str
    says: str
    kind: str
    texts: tuple[str, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Option:
    """A message with one option, and the name in its refusal, if it is refused."""

    sample: str
    says: str
    message: list[Any]
    refused_for: str | None

    @property
    def expected(self) -> Mapping[str, Any]:
        """Return the options, or EVENT's details."""
        return next(part for part in self.message if isinstance(part, dict))


@dataclass(frozen=True, slots=True)
class Step:
    """A message by name, with its `parts`."""

    by: str
    parts: Mapping[str, Any]


FORMS = {
    group: tuple(Form(**{**form, "texts": tuple(form["texts"])}) for form in forms)
    for group, forms in VECTORS["forms"].items()
}
READ = (*FORMS["broker"], *FORMS["dealer"], *FORMS["router_link"])
OPTIONS = {group: tuple(Option(**option) for option in options) for group, options in VECTORS["options"].items()}
SEQUENCE = tuple(Step(step["from"], step["message"]) for step in VECTORS["sequence"])


def known_options(kind: int, *, are_valid: bool) -> tuple[Option, ...]:
    """Return the vectors of known options for a message type."""
    of_kind = (one for one in OPTIONS["known"] if one.message[0] == kind)
    return tuple(one for one in of_kind if (one.refused_for is None) is are_valid)


def text_of(kind: str) -> str:
    """Return the shortest serialization of a message type."""
    return next(form.texts[-1] for form in READ if form.kind == kind)
