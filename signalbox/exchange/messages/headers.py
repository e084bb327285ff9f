"""Message headers as SQS message attributes, or as one JSON attribute where SQS does not allow them."""

import binascii
import hashlib
import json
import re
import string
from collections.abc import Collection, Iterator, Mapping

from signalbox.documents import Problems, Section
from signalbox.messages import Attribute

HEADERS = "headers"
# Attributes of the exchange itself. A header with such a name is not sent as an attribute, to prevent forgery.
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
MAXIMUM_NAME_LENGTH = 256  # SQS, of an attribute's name
NAME_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_-.")
# Sarracenia's v03: one JSON object. Possessive, so that a body of 1 MB costs no memory for steps to repeat.
ANNOUNCED_PATH = re.compile(r'"relPath"\s*:\s*("(?:[^"\\]++|\\.)*+")')
V02 = "v02."  # a body of this format is `time base-url path`
FILE_ID_CHARACTERS = 32
REFUSED = re.compile("[^\\t\\n\\r -\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")  # SQS: all but XML 1.0's characters
STRING, BINARY = "String", "Binary"
DATA_TYPE = re.compile(r"(?:String|Number|Binary)(?:\.[A-Za-z0-9_.-]{1,240})?")
# No more digits than SQS accepts; a number with more is carried in `headers`.
NUMBER = re.compile(r"[+-]?[0-9]{1,19}(?:\.[0-9]{1,19})?(?:[eE][+-]?[0-9]{1,2})?")
RESERVED_PREFIXES = ("aws.", "amazon.")  # SQS, case-insensitive


def packed(own: Mapping[str, Attribute], headers: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Return a message's attributes: its own and its headers, or its own and one attribute with all headers.

    Headers are never split between both forms: a reader that knows only attributes would miss some unnoticed.
    """
    is_carried = all(_is_carried(name, header) for name, header in headers.items())
    if is_carried and len(own) + len(headers) <= MAXIMUM_ATTRIBUTES:
        return {**own, **headers}
    return {**own, HEADERS: Attribute("String", headers_text(headers))}


def unpacked(
    attributes: Mapping[str, Attribute], problems: Problems, *, without: Collection[str]
) -> dict[str, Attribute]:
    """Return the headers in a message's attributes; the attributes named in `without` are not headers."""
    beside = {name: one for name, one in attributes.items() if name not in without and name != HEADERS}
    if HEADERS not in attributes:
        return beside
    inside = dict(_read(attributes[HEADERS].text or "", problems))
    for name in inside.keys() & beside.keys():
        problems.add(HEADERS, f"{name[:MAXIMUM_NAME_LENGTH]!r} is an attribute as well")
    return beside | inside


def headers_text(headers: Mapping[str, Attribute]) -> str:
    """Return headers as a JSON object: texts as strings, other values in the form of SQS's JSON.

    The result is ASCII: JSON escapes represent the characters that SQS does not allow.
    """
    values = {name: one.text if _is_text(one) else one.value for name, one in headers.items()}
    return json.dumps(values, separators=(",", ":"))


def is_allowed(text: str) -> bool:
    """Return whether SQS allows a text as a body or an attribute value: not empty, XML 1.0 characters only."""
    return bool(text) and REFUSED.search(text) is None


def _is_carried(name: str, header: Attribute) -> bool:
    is_typed = DATA_TYPE.fullmatch(header.data_type) is not None
    return name not in OWN_NAMES and _is_name(name) and is_typed and _is_value(header)


def _is_value(header: Attribute) -> bool:
    """Return whether SQS accepts an attribute's value: one in `headers` may be anything that its publisher wrote."""
    kind, text, base64 = header.data_type.partition(".")[0], header.text, header.base64
    if kind == BINARY:
        return text is None and base64 is not None and _is_base64(base64)
    if text is None or base64 is not None:
        return False
    return is_allowed(text) if kind == STRING else NUMBER.fullmatch(text) is not None


def _is_base64(text: str) -> bool:
    try:
        return bool(binascii.a2b_base64(text, strict_mode=True))
    except ValueError:  # binascii's error, and the one for characters that are not ASCII
        return False


def _is_name(name: str) -> bool:
    if not 1 <= len(name) <= MAXIMUM_NAME_LENGTH or not NAME_CHARACTERS.issuperset(name):
        return False
    return "" not in name.split(".") and not name.lower().startswith(RESERVED_PREFIXES)


def _is_text(header: Attribute) -> bool:
    return header.data_type == STRING and header.text is not None


def _read(text: str, problems: Problems) -> Iterator[tuple[str, Attribute]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:  # a text may be nested more deeply than Python's parser allows
        problems.add(HEADERS, f"is not JSON: {error}")
        return
    section = Section.of(document, HEADERS, problems)
    for name, value in section.fields.items():
        if isinstance(value, str):
            yield name, Attribute("String", value)
            continue
        found = section.section(name)
        data_type = found.required_text("DataType")
        yield name, Attribute(data_type, found.text("StringValue"), found.text("BinaryValue"))


def announced_file(key: str, body: str) -> str | None:
    """Return the id of the file that a message of Sarracenia announces, or None for any other message.

    The id is in history instead of the path, which may be confidential.
    """
    if key.startswith(V02):
        path = (*body.split(" "), "", "", "")[2]
        # sr3 escapes the path in the line of v02.
        return file_id(path.replace("%20", " ").replace("%23", "#")) if path else None
    found = ANNOUNCED_PATH.search(body) if '"relPath"' in body else None
    try:
        return file_id(json.loads(found[1])) if found else None
    except ValueError:  # not a JSON string, such as one with control characters
        return None


def file_id(path: str) -> str:
    """Return the id of an announced file: a hash of its path, without the slash at its start."""
    return hashlib.sha256(path.lstrip("/").encode(errors="surrogatepass")).hexdigest()[:FILE_ID_CHARACTERS]
