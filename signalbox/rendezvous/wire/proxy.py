"""The messages between proxies and broker: polls, poll responses, answers and answer responses."""

from dataclasses import dataclass

from signalbox.rendezvous.wire.gojson.codec import DecodedStruct, FieldType, Struct, encode
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import MAXIMUM_BODY_BYTES
from signalbox.rendezvous.wire.sdp import sdp_of

VERSION = "1.3"
KNOWN_TYPES = ("standalone", "webext", "badge", "iptproxy", "bloco")
UNKNOWN_TYPE = "unknown"
MATCH = "client match"
NO_MATCH = "no match"
INCORRECT_RELAY = "incorrect relay pattern"
# A proxy's own is 24 characters. It is stored in the record that it claims, which all polls read.
MAXIMUM_SID_BYTES = 100

_POLL = Struct(
    package="messages",
    name="ProxyPollRequest",
    fields={
        "Sid": FieldType.TEXT,
        "Version": FieldType.TEXT,
        "Type": FieldType.TEXT,
        "NAT": FieldType.TEXT,
        "Clients": FieldType.INTEGER,
        "AcceptedRelayPattern": FieldType.OPTIONAL_TEXT,
    },
)
_POLL_RESPONSE = Struct(
    package="messages",
    name="ProxyPollResponse",
    fields={
        "Status": FieldType.TEXT,
        "Offer": FieldType.TEXT,
        "NAT": FieldType.TEXT,
        "NextPoll": FieldType.INTEGER,
        "RelayURL": FieldType.TEXT,
    },
)
_ANSWER = Struct(
    package="messages",
    name="ProxyAnswerRequest",
    fields={"Version": FieldType.TEXT, "Sid": FieldType.TEXT, "Answer": FieldType.TEXT},
)


@dataclass(frozen=True, slots=True)
class ProxyPoll:
    """A proxy's poll for a client; `relay_pattern` is None if the proxy predates relay patterns."""

    sid: str
    proxy_type: str
    nat: Nat
    clients: int
    relay_pattern: str | None

    @classmethod
    def parse(cls, body: bytes) -> "ProxyPoll":
        """Return the poll in a body. Raises `InvalidMessage`."""
        record = _decoded(_POLL, body)
        return cls(
            sid=_sid(record),
            proxy_type=record.text("Type") if record.text("Type") in KNOWN_TYPES else UNKNOWN_TYPE,
            nat=Nat.parse(record.text("NAT")),
            clients=max(record.integer("Clients"), 0),
            relay_pattern=record.optional_text("AcceptedRelayPattern"),
        )


@dataclass(frozen=True, slots=True)
class ProxyAnswer:
    """A proxy's answer to the offer of its poll response."""

    sid: str
    answer: str

    @classmethod
    def parse(cls, body: bytes) -> "ProxyAnswer":
        """Return the answer in a body. Raises `InvalidMessage`."""
        if b"a=candidate" not in body:
            raise InvalidMessage("SDP contains no candidate")
        record = _decoded(_ANSWER, body)
        answer = cls(_sid(record), _required(record, "Answer"))
        sdp_of(answer.answer)  # or raises
        return answer


@dataclass(frozen=True, slots=True)
class PollResponse:
    """The broker's response to a poll."""

    status: str
    offer: str
    nat: Nat
    next_poll_milliseconds: int
    relay_url: str

    @property
    def is_match(self) -> bool:
        """True if the response contains a client's offer."""
        return self.status == MATCH

    @classmethod
    def parse(cls, body: bytes) -> "PollResponse":
        """Return the response in a body, parsed as a proxy does. Raises `InvalidMessage`."""
        record = _POLL_RESPONSE.decode(body)
        status = _required(record, "Status")
        return cls(
            status=status,
            offer=_required(record, "Offer") if status == MATCH else "",
            nat=Nat.parse(record.text("NAT")),
            next_poll_milliseconds=record.integer("NextPoll"),
            relay_url=record.text("RelayURL"),
        )


def is_relay_allowed(proxy_pattern: str | None, allowed: str) -> bool:
    """Return whether a proxy accepts every allowed relay; False for a proxy without a pattern.

    A pattern is a suffix of host names or, after a leading `^`, a whole name; a trailing `$` has no effect.
    """
    if proxy_pattern is None:
        return False
    pattern, rule = proxy_pattern.removesuffix("$"), allowed.removesuffix("$")
    return pattern == rule if pattern.startswith("^") else rule.removeprefix("^").endswith(pattern)


def poll_response(status: str, *, next_poll: int, offer: str = "", nat: str = "", relay_url: str = "") -> str:
    """Return the response to a poll; `next_poll` is in milliseconds."""
    # Always all five keys, in upstream's order.
    return encode({"Status": status, "Offer": offer, "NAT": nat, "NextPoll": next_poll, "RelayURL": relay_url})


def answer_response(*, accepted: bool) -> str:
    """Return the response to an answer; `accepted` is False if the client no longer waits."""
    return encode({"Status": "success" if accepted else "client gone"})


def poll_body(poll: ProxyPoll) -> str:
    """Return the request body of a poll."""
    return encode(
        {
            "Sid": poll.sid,
            "Version": VERSION,
            "Type": poll.proxy_type,
            "NAT": poll.nat,
            "Clients": poll.clients,
            "AcceptedRelayPattern": poll.relay_pattern,
        },
    )


def answer_body(answer: ProxyAnswer) -> str:
    """Return the request body of an answer."""
    return encode({"Version": VERSION, "Sid": answer.sid, "Answer": answer.answer})


def _decoded(struct: Struct, body: bytes) -> DecodedStruct:
    if len(body) > MAXIMUM_BODY_BYTES:
        raise InvalidMessage(f"{len(body)} bytes are too many; at most {MAXIMUM_BODY_BYTES} are allowed")
    record = struct.decode(body)
    if record.text("Version").split(".")[0] != "1":
        raise InvalidMessage("using unknown version")
    return record


def _sid(record: DecodedStruct) -> str:
    sid = _required(record, "Sid")
    if len(sid.encode()) > MAXIMUM_SID_BYTES:
        raise InvalidMessage(f"Sid has {len(sid.encode())} bytes; at most {MAXIMUM_SID_BYTES} are allowed")
    return sid


def _required(record: DecodedStruct, name: str) -> str:
    text = record.text(name)
    if not text:
        raise InvalidMessage(f"{name} is missing or empty")
    return text
