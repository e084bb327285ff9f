"""Headers of a message as SQS's attributes, and in one attribute where SQS cannot carry them as they are."""

import json
import re
import string
from collections.abc import Collection, Iterator, Mapping

from signalbox.documents import Problems, Section
from signalbox.messages import Attribute

HEADERS = "headers"
# What the exchange says of a message. A header of such a name is no attribute, since it could pass for one of these.
OWN_NAMES = frozenset(
    {
        HEADERS,
        "topic",
        "exchange",
        "message_id",
        "publisher",
        "sequence",
        "published_at",
        "expires_at",
        "Reason",
        "retry",
    }
)
MAXIMUM_ATTRIBUTES = 10  # SQS
MAXIMUM_NAME_LENGTH = 256  # SQS, of an attribute
NAME_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_-.")
REFUSED = re.compile("[^\\t\\n\\r -\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")  # SQS: what XML 1.0 has not
RESERVED_PREFIXES = ("aws.", "amazon.")  # SQS, in any case of letters


def packed(own: Mapping[str, Attribute], headers: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Return attributes of a message: its headers beside its own, or all of its headers in one.

    Not some of each: a reader that knows nothing of us would see only a part of the headers, and not know it.
    """
    is_carried = all(_is_carried(name, header) for name, header in headers.items())
    if is_carried and len(own) + len(headers) <= MAXIMUM_ATTRIBUTES:
        return {**own, **headers}
    return {**own, HEADERS: Attribute("String", headers_text(headers))}


def unpacked(
    attributes: Mapping[str, Attribute], problems: Problems, *, without: Collection[str]
) -> dict[str, Attribute]:
    """Return the headers among a message's attributes; `without` are the names of those that are none."""
    beside = {name: one for name, one in attributes.items() if name not in without and name != HEADERS}
    if HEADERS not in attributes:
        return beside
    inside = dict(_read(attributes[HEADERS].text or "", problems))
    for name in inside.keys() & beside.keys():
        problems.add(HEADERS, f"{name[:MAXIMUM_NAME_LENGTH]!r} is said beside it, too")
    return beside | inside


def headers_text(headers: Mapping[str, Attribute]) -> str:
    """Return headers as the JSON object in the attribute `headers`: texts, and what is no text as SQS's JSON has it.

    It is all ASCII: the escapes of JSON say what no message of SQS may hold.
    """
    values = {name: one.text if _is_text(one) else one.value for name, one in headers.items()}
    return json.dumps(values, separators=(",", ":"))


def is_allowed(text: str) -> bool:
    """Say whether SQS takes a text as a body or as an attribute's value: no emptiness, and only XML's characters."""
    return bool(text) and REFUSED.search(text) is None


def _is_carried(name: str, header: Attribute) -> bool:
    return name not in OWN_NAMES and _is_name(name) and (header.text is None or is_allowed(header.text))


def _is_name(name: str) -> bool:
    if not 1 <= len(name) <= MAXIMUM_NAME_LENGTH or not NAME_CHARACTERS.issuperset(name):
        return False
    return "" not in name.split(".") and not name.lower().startswith(RESERVED_PREFIXES)


def _is_text(header: Attribute) -> bool:
    return header.data_type == "String" and header.text is not None


def _read(text: str, problems: Problems) -> Iterator[tuple[str, Attribute]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:  # a text may be nested deeper than Python reads
        problems.add(HEADERS, f"is no JSON: {error}")
        return
    section = Section.of(document, HEADERS, problems)
    for name, value in section.fields.items():
        if isinstance(value, str):
            yield name, Attribute("String", value)
            continue
        found = section.section(name)
        data_type = found.required_text("DataType")
        yield name, Attribute(data_type, found.text("StringValue"), found.text("BinaryValue"))
