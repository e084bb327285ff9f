"""The parser of control commands, which reports all problems of a command at once."""

from collections.abc import Callable
from datetime import timedelta

from signalbox.control.envelope import Commands
from signalbox.documents import Section, shown
from signalbox.exchange.control import commands
from signalbox.exchange.control.live_settings import LIVE_FIELDS, read_live_settings
from signalbox.exchange.messages.properties import TOPIC, InvalidPublication, MessageProperties
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.patterns import InvalidPattern, Pattern
from signalbox.exchange.model.records import Binding, GroupBy, ResourceKind, ResourceRef
from signalbox.exchange.model.topics import RoutingKey, short_string_problem
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import (
    MAXIMUM_NAME_BYTES,
    ExchangeName,
    UserName,
    parse_exchange_name,
    parse_queue_name,
    parse_user_name,
)
from signalbox.sarracenia.rights.permissions import Ownership, Role

MINIMUM_EXPIRES_SECONDS = 60
LATER = "; on AWS a queue is deleted 20 minutes later, when its metrics are complete"
MAXIMUM_EXPIRES_SECONDS = 31_622_400  # a leap year
MAXIMUM_TTL_SECONDS = 1_209_600  # SQS keeps messages for at most 14 days
MAXIMUM_PREFETCH = 1000
MAXIMUM_RECEIVES = 1000  # SQS
MAXIMUM_REPLAYED = 100
MAXIMUM_NAMES = 100
MAXIMUM_MESSAGE_ID = 100  # SQS
MAXIMUM_MILLISECONDS = 10**13 - 1  # the year 2286
# Placeholders for missing and invalid fields, each of which is reported as a problem.
NO_EXCHANGE, NO_QUEUE, NO_USER = ExchangeName("x"), DeclaredName("q_"), UserName("_")
NO_PROPERTIES = MessageProperties(RoutingKey(""), "-", {})


def read_user(section: Section) -> UserName:
    """Return the field `user`, a user of the stage."""
    return section.parsed("user", parse_user_name, default=NO_USER)


def _exchange(section: Section, field: str = "exchange") -> ExchangeName:
    return section.parsed(field, parse_exchange_name, default=NO_EXCHANGE)


def _queue(section: Section) -> DeclaredName:
    return DeclaredName(section.parsed("queue", parse_queue_name, default=NO_QUEUE))


def _declare_exchange(section: Section) -> commands.Command:
    exchange = _exchange(section)
    live = read_live_settings(section, exchange=exchange)
    if section.fields.get("alternate") in (None, ""):
        return commands.DeclareExchange(
            exchange, None, removes_alternate=section.fields.get("alternate") == "", live=live
        )
    alternate = _exchange(section, "alternate")
    if alternate == exchange:
        section.problem("alternate", "an exchange cannot be its own alternate")
    return commands.DeclareExchange(exchange, alternate, live=live)


def _declare_queue(section: Section) -> commands.Command:
    patch = commands.QueueSettingsPatch(
        expires=_time(
            section, "expires_seconds", least=MINIMUM_EXPIRES_SECONDS, most=MAXIMUM_EXPIRES_SECONDS, note=LATER
        ),
        message_ttl=_time(section, "message_ttl_seconds", least=1, most=MAXIMUM_TTL_SECONDS),
        prefetch=_number(section, "prefetch", most=MAXIMUM_PREFETCH),
        maximum_receives=_number(section, "maximum_receives", most=MAXIMUM_RECEIVES),
        group_by=section.choice("group_by", GroupBy, default=None),
    )
    return commands.DeclareQueue(_queue(section), patch)


def _time(section: Section, field: str, *, least: int, most: int, note: str = "") -> timedelta | None:
    seconds = section.whole_number(field)
    if seconds is None:
        return None
    if seconds != 0 and not least <= seconds <= most:
        section.problem(field, f"expected {least} to {most}, or 0 for never, not {shown(seconds)}{note}")
        return None
    return timedelta(seconds=seconds)


def _number(section: Section, field: str, *, most: int) -> int | None:
    number = section.whole_number(field)
    if number is not None and not 1 <= number <= most:
        section.problem(field, f"expected 1 to {most}, not {shown(number)}")
    return number


def _bind(section: Section) -> commands.Command:
    binding = _bound(section, Pattern.parse)
    if binding.target == ResourceRef(ResourceKind.EXCHANGE, binding.exchange):
        section.problem("destination", "an exchange cannot be bound to itself")
    return commands.Bind(binding)


def _unbind_user(section: Section) -> commands.Command:
    role = section.choice("role", Role, default=Role.SUBSCRIBER)
    return commands.UnbindUser(
        read_user(section), role, section.choice("ownership", Ownership, default=Ownership.STRICT)
    )


def _bound(section: Section, parse: Callable[[str], Pattern]) -> Binding:
    return Binding(_exchange(section), _target(section), _pattern(section, parse))


def _target(section: Section) -> ResourceRef:
    if section.fields.get("destination") is None:
        return ResourceRef(ResourceKind.QUEUE, _queue(section))
    if section.fields.get("queue") is not None:
        section.problem("destination", "expected either a queue or another exchange as destination, not both")
    return ResourceRef(ResourceKind.EXCHANGE, _exchange(section, "destination"))


def _pattern(section: Section, parse: Callable[[str], Pattern]) -> Pattern:
    text = _text(section, "pattern")
    return section.attempt("pattern", lambda: parse(text), default=Pattern(()))


def _stored(text: str) -> Pattern:
    # A binding with more `#` than allowed today can still be removed.
    problem = short_string_problem(text)
    if problem:
        raise InvalidPattern(problem)
    return Pattern.stored(text)


def _text(section: Section, field: str) -> str:
    """Return a required text that may be empty, as the empty routing key is."""
    if section.fields.get(field) is None:
        section.problem(field, 'is missing; an empty text is ""')
    return section.text(field) or ""


def _optional_exchange(section: Section) -> ExchangeName | None:
    return None if section.fields.get("exchange") is None else _exchange(section)


def _publish(section: Section) -> commands.Command:
    return commands.PublishMessage(_exchange(section), _properties(section), section.required_text("id"))


def _properties(section: Section) -> MessageProperties:
    key, body, headers = _text(section, "routing_key"), section.required_text("body"), section.texts_by_name("headers")
    try:
        return MessageProperties.of_publication(key, body or NO_PROPERTIES.body, headers)
    except InvalidPublication as error:
        for line in str(error).splitlines():
            path, _, text = line.partition(": ")
            section.problem("routing_key" if path == TOPIC else path, text)
        return NO_PROPERTIES


def _replay(section: Section) -> commands.Command:
    queue = _queue(section)
    messages = tuple(map(_replayed, section.sections("messages")))
    if not 1 <= len(messages) <= MAXIMUM_REPLAYED:
        section.problem("messages", f"expected 1 to {MAXIMUM_REPLAYED} messages, not {len(messages)}")
    return commands.ReplayMessages(queue, messages)


def _replayed(section: Section) -> commands.ReplayedMessage:
    section.refuse_unknown(REPLAYED_FIELDS)
    published_at = section.whole_number("published_at")
    if published_at is None or published_at > MAXIMUM_MILLISECONDS:
        section.problem("published_at", "expected milliseconds since 1970")
    return commands.ReplayedMessage(
        exchange=_exchange(section),
        properties=_properties(section),
        message_id=MessageId(_printable(section, "message_id", section.required_text("message_id"))),
        publisher=_printable(section, "publisher", section.text("publisher")) or None,
        published_at=published_at or 0,
    )


def _status(section: Section) -> commands.Command:
    names = section.texts("names")
    if len(names) > MAXIMUM_NAMES:
        section.problem("names", f"expected {MAXIMUM_NAMES} at most, not {len(names)}")
    for number, name in enumerate(names):
        if not 1 <= len(name) <= MAXIMUM_NAME_BYTES:
            section.problem(f"names[{number}]", f"expected a name, or one with '*', not {shown(name)}")
    return commands.Status(names)


def _printable(section: Section, field: str, text: str | None) -> str:
    if text and (len(text) > MAXIMUM_MESSAGE_ID or not all("!" <= character <= "~" for character in text)):
        section.problem(field, f"expected {MAXIMUM_MESSAGE_ID} printable characters at most, not {shown(text)}")
    return text or ""


REPLAYED_FIELDS = ("exchange", "routing_key", "body", "headers", "message_id", "publisher", "published_at")
BINDING_FIELDS = ("exchange", "queue", "destination", "pattern")
SETTINGS_FIELDS = ("expires_seconds", "message_ttl_seconds", "prefetch", "maximum_receives", "group_by")
COMMANDS: Commands[commands.Command] = {
    "declare_exchange": (("exchange", "alternate", *LIVE_FIELDS), _declare_exchange),
    "delete_exchange": (
        ("exchange", "force"),
        lambda section: commands.DeleteExchange(_exchange(section), section.flag("force")),
    ),
    "declare_queue": (("queue", *SETTINGS_FIELDS), _declare_queue),
    "delete_queue": (
        ("queue", "if_empty"),
        lambda section: commands.DeleteQueue(_queue(section), section.flag("if_empty")),
    ),
    "bind": (BINDING_FIELDS, _bind),
    "unbind": (BINDING_FIELDS, lambda section: commands.Unbind(_bound(section, _stored))),
    "unbind_user": (("user", "role", "ownership"), _unbind_user),
    "exchanges": (("exchange",), lambda section: commands.ListExchanges(_optional_exchange(section))),
    "queues": ((), lambda _: commands.ListQueues()),
    "bindings": (("exchange",), lambda section: commands.ListBindings(_optional_exchange(section))),
    "publish": (("exchange", "routing_key", "body", "headers"), _publish),
    "consuming": (("queue",), lambda section: commands.ConsumerHeartbeat(_queue(section))),
    "whoami": ((), lambda _: commands.WhoAmI()),
    "replay": (("queue", "messages"), _replay),
    "status": (("names",), _status),
}
