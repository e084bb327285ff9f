"""Parser and serializer of WAMP messages in the subprotocol `wamp.2.json`, one JSON array per message."""

import binascii
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NoReturn

from signalbox.documents import shown
from signalbox.errors import RejectedError
from signalbox.live.wamp import messages
from signalbox.live.wamp.messages import EMPTY, Message, Payload

SUBPROTOCOL = "wamp.2.json"
# API Gateway closes a WebSocket with 1009 on a larger message, and on a larger single frame. All clients but nexus send
# a message as one frame, so the second limit applies to them.
MAXIMUM_MESSAGE_BYTES = 131_072
MAXIMUM_FRAME_BYTES = 32_768
MAXIMUM_ID = 2**53  # the largest integer that JavaScript represents exactly
MAXIMUM_DEPTH = 100  # of nested lists and objects: far below the recursion limit of Python's JSON serializer
# A string that begins with it is base64 of a binary value (basic profile, «Binary support»). Autobahn for Python
# decodes such a string wherever it stands and ends its session if it cannot, as crossbar ends that of the sender.
BINARY_MARK = "\0"
ESCAPED_MARK = r"\u0000"
# Characters that JSON allows in a string and the body of an SQS message does not.
NOT_IN_SQS = re.compile("[\ud800-\udfff\ufffe\uffff]")


class MalformedMessage(RejectedError):
    """Raised when a text is not a WAMP message, which is a protocol violation by its sender."""


@dataclass(frozen=True, slots=True)
class MalformedFrame:
    """A frame that is not a WAMP message; `problem` describes the error."""

    problem: str


@dataclass(frozen=True, slots=True)
class ElementType:
    """A type of a message's element: its name in error texts, and the predicate that accepts its values."""

    name: str
    accepts: Callable[[object], bool]


def _is_id(value: object) -> bool:
    # 0 is accepted although the specification starts ids at 1: Ruby's client sends 0, and a revocation replies to 0.
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAXIMUM_ID


ID = ElementType(f"an integer from 0 to {MAXIMUM_ID}", _is_id)
TEXT = ElementType("a string", lambda value: isinstance(value, str))
DICTIONARY = ElementType("an object", lambda value: isinstance(value, dict))
LIST = ElementType("a list", lambda value: isinstance(value, list))


@dataclass(frozen=True, slots=True)
class MessageFormat:
    """The array format of a message class: after the type code, one element per field in the fields' order."""

    kind: Callable[..., Message]
    elements: tuple[ElementType, ...]
    optional: tuple[ElementType, ...] = ()
    has_payload: bool = False


FORMATS: Mapping[int, MessageFormat] = MappingProxyType(
    {
        1: MessageFormat(messages.Hello, (TEXT, DICTIONARY)),
        2: MessageFormat(messages.Welcome, (ID, DICTIONARY)),
        3: MessageFormat(messages.Abort, (DICTIONARY, TEXT), has_payload=True),
        4: MessageFormat(messages.Challenge, (TEXT, DICTIONARY)),
        5: MessageFormat(messages.Authenticate, (TEXT, DICTIONARY)),
        6: MessageFormat(messages.Goodbye, (DICTIONARY, TEXT)),
        8: MessageFormat(messages.Error, (ID, ID, DICTIONARY, TEXT), has_payload=True),
        16: MessageFormat(messages.Publish, (ID, DICTIONARY, TEXT), has_payload=True),
        17: MessageFormat(messages.Published, (ID, ID)),
        32: MessageFormat(messages.Subscribe, (ID, DICTIONARY, TEXT)),
        33: MessageFormat(messages.Subscribed, (ID, ID)),
        34: MessageFormat(messages.Unsubscribe, (ID, ID)),
        35: MessageFormat(messages.Unsubscribed, (ID,), optional=(DICTIONARY,)),
        36: MessageFormat(messages.Event, (ID, ID, DICTIONARY), has_payload=True),
        48: MessageFormat(messages.Call, (ID, DICTIONARY, TEXT), has_payload=True),
        49: MessageFormat(messages.Cancel, (ID, DICTIONARY)),
        50: MessageFormat(messages.Result, (ID, DICTIONARY), has_payload=True),
        64: MessageFormat(messages.Register, (ID, DICTIONARY, TEXT)),
        65: MessageFormat(messages.Registered, (ID, ID)),
        66: MessageFormat(messages.Unregister, (ID, ID)),
        67: MessageFormat(messages.Unregistered, (ID,), optional=(DICTIONARY,)),
        68: MessageFormat(messages.Invocation, (ID, ID, DICTIONARY), has_payload=True),
        69: MessageFormat(messages.Interrupt, (ID, DICTIONARY)),
        70: MessageFormat(messages.Yield, (ID, DICTIONARY), has_payload=True),
    }
)
TYPE_CODES: Mapping[object, int] = MappingProxyType({form.kind: code for code, form in FORMATS.items()})

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_Layout = tuple[int, Callable[[Message], tuple[object, ...]], Callable[[Message], Payload] | None]


def decode(text: str) -> Message | MalformedFrame:
    """Parse a client's frame; return a `MalformedFrame` instead of raising."""
    try:
        return parse(text)
    except MalformedMessage as problem:
        return MalformedFrame(str(problem))


def parse(text: str, *, maximum_depth: int = MAXIMUM_DEPTH) -> Message:
    """Parse a WAMP message. Raises `MalformedMessage`, whose text describes only the shape of the input."""
    document = parse_json(text, maximum_depth=maximum_depth)
    if not isinstance(document, list) or not document:
        raise MalformedMessage("expected a list that begins with a message type code")
    form = FORMATS.get(document[0]) if _is_id(document[0]) else None
    if form is None:
        raise MalformedMessage(f"{shown(document[0])} is not a message type code")
    return _message(form, document)


def _message(form: MessageFormat, document: list[Any]) -> Message:
    name, values = str(getattr(form.kind, "__name__", form.kind)).upper(), document[1:]
    rest = form.optional or ((LIST, DICTIONARY) if form.has_payload else ())
    least, most = len(form.elements), len(form.elements) + len(rest)
    if not least <= len(values) <= most:
        raise MalformedMessage(f"{name} has {len(values)} elements after its type, not {least} to {most}")
    # In a payload, null is equivalent to an absent element, as in Autobahn.
    present = [one for one in enumerate(values) if one[0] < least or one[1] is not None]
    for position, value in present:
        element = (*form.elements, *rest)[position]
        if not element.accepts(value):
            raise MalformedMessage(f"element {position + 1} of {name} is not {element.name}")
    if not form.has_payload:
        return form.kind(*values)
    return form.kind(*values[:least], _payload(*values[least:]))


def _payload(arguments: list[object] | None = None, keywords: dict[str, object] | None = None) -> Payload:
    return Payload(tuple(arguments or ()), keywords or {}) if arguments or keywords else EMPTY


def serialize(message: Message) -> str:
    """Serialize a message as compact JSON in which characters that SQS refuses are escaped."""
    text = _ENCODER.encode(_elements(message))
    return text if text.isascii() else NOT_IN_SQS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _elements(message: Message) -> list[object]:
    code, read, payload_of = _LAYOUTS[type(message)]
    elements = [code, *read(message)]
    if elements[-1] is None:
        elements.pop()  # an optional element
    payload = payload_of(message) if payload_of else EMPTY
    # An empty list or object is omitted, except for the list before a non-empty object.
    if payload.arguments or payload.keywords:
        elements.append(payload.arguments)
    if payload.keywords:
        elements.append(payload.keywords)
    return elements


def _layout(code: int, form: MessageFormat) -> _Layout:
    names = [one.name for one in fields(form.kind)]  # type: ignore[arg-type]  # a dataclass
    payload_of = attrgetter(names.pop()) if form.has_payload else None
    return code, attrgetter(*names), payload_of  # every message has two elements at least


# For each class of messages: its type code, the reader of its elements, and the reader of its payload.
_LAYOUTS: Mapping[object, _Layout] = MappingProxyType(
    {form.kind: _layout(code, form) for code, form in FORMATS.items()}
)


def size_bytes(text: str) -> int:
    """Return the size of a text in UTF-8, by which API Gateway limits messages."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def parse_json(text: str, *, maximum_depth: int = MAXIMUM_DEPTH) -> object:
    """Parse JSON that every client can read: finite numbers, limited depth, binary values in base64.

    Raises `MalformedMessage`.
    """
    try:
        document = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except MalformedMessage:
        raise
    except (ValueError, RecursionError) as error:  # an integer of more digits than Python parses is a ValueError
        raise MalformedMessage("expected JSON") from error
    if text.count("[") + text.count("{") > maximum_depth and _is_deep(document, maximum_depth):
        raise MalformedMessage(f"lists and objects are nested more than {maximum_depth} levels deep")
    if ESCAPED_MARK in text and not all(map(is_readable, _strings(document))):
        raise MalformedMessage("a string begins with U+0000, which marks binary values, and is not base64 after it")
    return document


def is_readable(text: str) -> bool:
    """Return whether every client can read a string: it is not marked as binary, or it is base64 after the mark."""
    if not text.startswith(BINARY_MARK):
        return True
    try:
        binascii.a2b_base64(text[1:], strict_mode=True)
    except ValueError:  # binascii's error, and the one for characters that are not ASCII
        return False
    return True


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedMessage(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise MalformedMessage("a number is too large for a 64-bit float")
    return number


def _strings(document: object) -> Iterator[str]:
    """Yield the strings in a document, except the names in objects, which no client takes for binary values."""
    open_values = [document]
    while open_values:
        value = open_values.pop()
        if isinstance(value, str):
            yield value
        open_values.extend(_inside(value))


def _is_deep(document: object, maximum: int) -> bool:
    level = [document]
    for _ in range(maximum):
        level = [inner for one in level for inner in _inside(one) if isinstance(inner, list | dict)]
    return bool(level)


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        return iter(value.values())
    return iter(value if isinstance(value, list) else ())
