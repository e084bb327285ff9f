"""The test vectors of WAMP's specification, as they stand in `vectors.json` with whence they came.

Of their forms, `broker` has those that a broker which speaks JSON says or hears, and `dealer` those that only somebody
says or hears who offers procedures. `router_link` are events that came by another router, which we read, since we
ignore options that we do not know. `unread` are no messages to us: payloads that are encrypted end to end, and the
acknowledgement of an event, which has a number of its own until the specification has one.

Of options, `known` are those that the specification has for PUBLISH, SUBSCRIBE and EVENT, and that we know. `unknown`
are those of routers linked to one another and of Autobahn, which we ignore. `malformed` come with an encrypted payload.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VECTORS: Mapping[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())


@dataclass(frozen=True, slots=True)
class Form:
    """A message and the texts that it may be, the last of them without spaces; `attributes` are its parts by name."""

    sample: str
    says: str
    kind: str
    texts: tuple[str, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Option:
    """A message with one option, and by what name it is refused, if it is."""

    sample: str
    says: str
    message: list[Any]
    refused_for: str | None

    @property
    def told(self) -> Mapping[str, Any]:
        """The options, or what EVENT has in their place."""
        return next(part for part in self.message if isinstance(part, dict))


@dataclass(frozen=True, slots=True)
class Step:
    """What one says to the other: `parts` of a message, by name."""

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
    """Options that we know, of messages of a type."""
    of_kind = (one for one in OPTIONS["known"] if one.message[0] == kind)
    return tuple(one for one in of_kind if (one.refused_for is None) is are_valid)


def text_of(kind: str) -> str:
    """A message of a kind, as short as it can be written."""
    return next(form.texts[-1] for form in READ if form.kind == kind)
