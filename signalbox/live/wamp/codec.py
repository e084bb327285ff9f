"""WAMP's messages as the subprotocol `wamp.2.json` has them: one JSON array each."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, NoReturn

from signalbox.documents import shown
from signalbox.errors import RejectedError
from signalbox.live.wamp import messages
from signalbox.live.wamp.messages import EMPTY, Message, Payload

SUBPROTOCOL = "wamp.2.json"
# API Gateway, WebSocket: a larger message, and a larger single frame of one, close the connection with 1009. Clients
# other than nexus send a message as one frame, so to them the second is the limit.
MAXIMUM_MESSAGE_BYTES = 131_072
MAXIMUM_FRAME_BYTES = 32_768
MAXIMUM_ID = 2**53  # the largest that a JavaScript client can tell from its neighbours
MAXIMUM_DEPTH = 100  # of lists in lists: what Python's reader takes, its writer must not fail at
# What JSON allows in a string and SQS, through which messages travel, does not.
NOT_IN_SQS = re.compile("[\ud800-\udfff\ufffe\uffff]")


class MalformedMessage(RejectedError):
    """Raised when a text is no WAMP message: a protocol violation, whoever said it."""


@dataclass(frozen=True, slots=True)
class MalformedFrame:
    """What a client said that is no message, by what is wrong with it."""

    problem: str


@dataclass(frozen=True, slots=True)
class ElementType:
    """What may stand at a place of a message, as problems call it."""

    name: str
    takes: Callable[[object], bool]


def _is_id(value: object) -> bool:
    # 0, too: the specification has ids begin at 1, but Ruby's client does not, and a revocation replies to 0.
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAXIMUM_ID


ID = ElementType(f"a whole number from 0 to {MAXIMUM_ID}", _is_id)
TEXT = ElementType("a text", lambda value: isinstance(value, str))
DICTIONARY = ElementType("an object", lambda value: isinstance(value, dict))
LIST = ElementType("a list", lambda value: isinstance(value, list))


@dataclass(frozen=True, slots=True)
class MessageFormat:
    """How a message stands in its array: behind the number of its type come its elements, in its fields' order."""

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


def decode(text: str) -> Message | MalformedFrame:
    """Return what a client said, be it a message or not."""
    try:
        return parse(text)
    except MalformedMessage as problem:
        return MalformedFrame(str(problem))


def parse(text: str) -> Message:
    """Return the message in a text. Raises `MalformedMessage`; what the text says is never in it, only its shape."""
    document = parse_json(text)
    if not isinstance(document, list) or not document:
        raise MalformedMessage("expected a list that begins with the number of a message's type")
    form = FORMATS.get(document[0]) if _is_id(document[0]) else None
    if form is None:
        raise MalformedMessage(f"{shown(document[0])} is not the number of a message's type")
    return _message(form, document)


def _message(form: MessageFormat, document: list[Any]) -> Message:
    name, said = _name(form), document[1:]
    rest = form.optional or ((LIST, DICTIONARY) if form.has_payload else ())
    least, most = len(form.elements), len(form.elements) + len(rest)
    if not least <= len(said) <= most:
        raise MalformedMessage(f"{name} has {len(said)} elements behind its type, not {least} to {most}")
    # Absent and null are the same in a payload, as they are to Autobahn.
    given = [one for one in enumerate(said) if one[0] < least or one[1] is not None]
    for place, value in given:
        element = (*form.elements, *rest)[place]
        if not element.takes(value):
            raise MalformedMessage(f"element {place + 1} of {name} is not {element.name}")
    if not form.has_payload:
        return form.kind(*said)
    return form.kind(*said[:least], _payload(*said[least:]))


def _name(form: MessageFormat) -> str:
    return str(getattr(form.kind, "__name__", form.kind)).upper()


def _payload(arguments: list[object] | None = None, keywords: dict[str, object] | None = None) -> Payload:
    return Payload(tuple(arguments or ()), keywords or {}) if arguments or keywords else EMPTY


def serialize(message: Message) -> str:
    """Return a message as it is sent: short, and in characters that SQS takes."""
    text = json.dumps(list(_elements(message)), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return NOT_IN_SQS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _elements(message: Message) -> Iterator[object]:
    yield TYPE_CODES[type(message)]
    for one in fields(message):
        value = getattr(message, one.name)
        if isinstance(value, Payload):
            # An empty list or object is not sent, but for the list before an object.
            yield from ([value.arguments] if value.arguments or value.keywords else [])
            yield from ([value.keywords] if value.keywords else [])
        elif value is not None:
            yield value


def size_bytes(text: str) -> int:
    """Return what a text counts for against the limits of a connection."""
    return len(text.encode(errors="surrogatepass"))


def parse_json(text: str) -> object:
    """Return the document in a text, if it can be written again. Raises `MalformedMessage`."""
    try:
        document = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except MalformedMessage:
        raise
    except (ValueError, RecursionError) as error:  # numbers of more digits than Python reads are a ValueError, too
        raise MalformedMessage("expected JSON") from error
    if _is_deep(document):
        raise MalformedMessage(f"lists and objects stand in one another more than {MAXIMUM_DEPTH} times")
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedMessage(f"{name} is no number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise MalformedMessage("a number is too large to be passed on")
    return number


def _is_deep(document: object) -> bool:
    level = [document]
    for _ in range(MAXIMUM_DEPTH):
        level = [inner for one in level for inner in _inside(one) if isinstance(inner, list | dict)]
    return bool(level)


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        return iter(value.values())
    return iter(value if isinstance(value, list) else ())
