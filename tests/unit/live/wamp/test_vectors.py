"""The specification's test vectors: each form is parsed and serialized, each option accepted or refused."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.live.model.effects import Attach, Close, Distribute, Drop, Effect, Post
from signalbox.live.wamp import messages, uris
from signalbox.live.wamp.codec import FORMATS, TYPE_CODES, MalformedFrame, MalformedMessage, decode, parse, serialize
from signalbox.live.wamp.messages import Message
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.unit.clients.live.test_client import WELCOME, World
from tests.unit.live.session.stage import WITHOUT_RIGHTS, account, joined, open_to
from tests.unit.live.wamp import vectors
from tests.unit.live.wamp.vectors import Form, Option, known_options

PUBLISH, SUBSCRIBE, EVENT = 16, 32, 36
CLIENT = account("client", WITHOUT_RIGHTS.role, *open_to("com."))

of_sample = {"ids": lambda one: f"{one.sample}: {one.says}"}


def test_every_json_vector_of_the_specification_is_used() -> None:
    forms = {group: sum(len(form.texts) for form in found) for group, found in vectors.FORMS.items()}
    options = {group: len(found) for group, found in vectors.OPTIONS.items()}
    known = [
        len(known_options(kind, are_valid=valid)) for kind in (PUBLISH, SUBSCRIBE, EVENT) for valid in (True, False)
    ]

    assert forms == {"broker": 35, "dealer": 16, "router_link": 2, "unread": 6}
    assert options == {"known": 46, "unknown": 15, "malformed": 6}
    assert known == [15, 12, 5, 3, 6, 5]  # valid and invalid ones, of each kind
    assert len(vectors.SEQUENCE) == 4


# --- forms


@pytest.mark.parametrize("form", vectors.READ, **of_sample)
def test_a_message_is_parsed_from_each_form_and_serialized_as_the_shortest(form: Form) -> None:
    read = [parse(text) for text in form.texts]

    assert [parts(message, form.attributes) for message in read] == [form.attributes] * len(form.texts)
    assert {serialize(message) for message in read} == {form.texts[-1]}


def test_every_message_type_has_a_vector() -> None:
    assert {TYPE_CODES[type(parse(form.texts[-1]))] for form in vectors.READ} == set(FORMATS)


@pytest.mark.parametrize("form", vectors.FORMS["unread"], **of_sample)
def test_end_to_end_encrypted_and_subscriber_acknowledged_messages_are_refused(form: Form) -> None:
    assert all(isinstance(decode(text), MalformedFrame) for text in form.texts)


def parts(message: Message, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message's fields by the vectors' names."""
    payload = getattr(message, "payload", messages.EMPTY)
    own = {
        "message_type": TYPE_CODES[type(message)],
        "args": list(payload.arguments) or None,
        "kwargs": dict(payload.keywords) or None,
    }
    if "roles" in wanted:
        own["roles"] = getattr(message, "details")["roles"]  # noqa: B009 - of HELLO and WELCOME alone
    return {name: own[name] if name in own else getattr(message, name.removesuffix("_id")) for name in wanted}


# --- options of PUBLISH and SUBSCRIBE

PUBLISHED: Mapping[str, Callable[[Distribute], object]] = {
    "acknowledge": lambda effect: effect.request is not None,
    "exclude_me": lambda effect: effect.audience.excluded_publisher is not None,
    "exclude": lambda effect: sorted(effect.audience.exclude or ()),
    "exclude_authid": lambda effect: sorted(effect.audience.exclude_authid or ()),
    "exclude_authrole": lambda effect: sorted(effect.audience.exclude_authrole or ()),
    "eligible": lambda effect: sorted(effect.audience.eligible or ()),
    "eligible_authid": lambda effect: sorted(effect.audience.eligible_authid or ()),
    "eligible_authrole": lambda effect: sorted(effect.audience.eligible_authrole or ()),
    "retain": lambda effect: effect.is_retained,
}


def of_clients(group: str) -> list[Option]:
    """Return the option vectors of client messages."""
    return [one for one in vectors.OPTIONS[group] if one.message[0] != EVENT]


def effects_of(message: object) -> tuple[Effect, ...]:
    return joined(CLIENT).receive(decode(json.dumps(message))).effects


def saying(option: Option, **others: object) -> object:
    """Return the message with additional options."""
    kind, request, options, *rest = option.message
    return [kind, request, {**others, **options}, *rest]


@pytest.mark.parametrize("option", known_options(PUBLISH, are_valid=True), **of_sample)
def test_a_publication_follows_its_options(option: Option) -> None:
    (effect,) = effects_of(option.message)

    assert isinstance(effect, Distribute)
    assert {name: PUBLISHED[name](effect) for name in option.expected} == option.expected


@pytest.mark.parametrize("option", known_options(PUBLISH, are_valid=False), **of_sample)
def test_a_publication_with_an_option_of_another_type_is_not_distributed(option: Option) -> None:
    """An unacknowledged publication gets no ERROR; the reason is counted."""
    assert effects_of(option.message) == (Drop(uris.INVALID_ARGUMENT),)


@pytest.mark.parametrize(
    "option", [one for one in known_options(PUBLISH, are_valid=False) if one.refused_for != "acknowledge"], **of_sample
)
def test_an_acknowledged_publication_with_an_invalid_option_gets_an_error(option: Option) -> None:
    (effect,) = effects_of(saying(option, acknowledge=True))

    assert refusal_in(effect) == (PUBLISH, 123, uris.INVALID_ARGUMENT, f"options.{option.refused_for}")


@pytest.mark.parametrize("option", known_options(SUBSCRIBE, are_valid=True), **of_sample)
def test_a_subscription_follows_its_options(option: Option) -> None:
    subscribed, attach = effects_of(option.message)

    assert isinstance(attach, Attach)
    assert subscribed == Post(messages.Subscribed(messages.RequestId(123), attach.pattern.subscription_id))
    expected = {"match": str(attach.pattern.match), "get_retained": attach.get_retained}
    assert {name: expected[name] for name in option.expected} == option.expected


@pytest.mark.parametrize("option", known_options(SUBSCRIBE, are_valid=False), **of_sample)
def test_a_subscription_with_an_invalid_option_is_refused_with_its_name(option: Option) -> None:
    (effect,) = effects_of(option.message)

    assert refusal_in(effect) == (SUBSCRIBE, 123, uris.INVALID_ARGUMENT, f"options.{option.refused_for}")


def refusal_in(effect: Effect) -> tuple[int, int, str, str]:
    """Return an ERROR's request type, URI and the option that its text names."""
    assert isinstance(effect, Post)
    error = effect.message
    assert isinstance(error, messages.Error)
    (text,) = error.payload.arguments
    return error.request_type, error.request, error.error, str(text).partition(":")[0].partition("[")[0]


@pytest.mark.parametrize("option", of_clients("unknown"), **of_sample)
def test_unknown_options_are_ignored(option: Option) -> None:
    kind, request, _, topic = option.message

    assert effects_of(option.message) == effects_of([kind, request, {}, topic])


@pytest.mark.parametrize("option", of_clients("malformed"), **of_sample)
def test_an_end_to_end_encrypted_payload_ends_the_session(option: Option) -> None:
    abort, close = effects_of(option.message)[-2:]

    assert isinstance(abort, Post)
    assert isinstance(abort.message, messages.Abort)
    assert (abort.message.reason, close) == (uris.PROTOCOL_VIOLATION, Close())


# --- details of EVENT, which the client parses

RECEIVED: Mapping[str, Callable[[ReceivedEvent], object]] = {
    "topic": lambda received: received.topic,
    "retained": lambda received: received.is_retained,
    "publisher": lambda received: received.publisher,
    "publisher_authid": lambda received: received.publisher_authid,
    "publisher_authrole": lambda received: received.publisher_authrole,
}


def of_router(group: str) -> list[Option]:
    """Return the option vectors of router messages."""
    return [one for one in vectors.OPTIONS[group] if one.message[0] == EVENT]


def expected(message: list[Any]) -> LiveClient:
    """Return a subscribed client to which the router sends a message."""
    client = World().client([WELCOME, [33, 1, message[1]], message])
    client.follow(PatternCursor(TopicPattern.parse("com.", MatchPolicy.PREFIX)))
    return client


@pytest.mark.parametrize("option", known_options(EVENT, are_valid=True), **of_sample)
def test_an_event_reaches_the_application_with_its_details(option: Option) -> None:
    received = expected(option.message).receive()

    assert received is not None
    assert (received.publication, received.payload.arguments) == (456, ("args",))
    assert {name: RECEIVED[name](received) for name in option.expected} == option.expected


@pytest.mark.parametrize("option", known_options(EVENT, are_valid=False), **of_sample)
def test_an_event_with_a_malformed_detail_is_refused(option: Option) -> None:
    with pytest.raises(MalformedMessage, match=rf"^details\.{option.refused_for}: expected "):
        expected(option.message).receive()


@pytest.mark.parametrize("option", of_router("unknown"), **of_sample)
def test_unknown_details_of_an_event_are_ignored(option: Option) -> None:
    kind, subscription, publication, _, payload = option.message

    assert expected(option.message).receive() == expected([kind, subscription, publication, {}, payload]).receive()


@pytest.mark.parametrize("option", of_router("malformed"), **of_sample)
def test_an_end_to_end_encrypted_event_is_refused(option: Option) -> None:
    with pytest.raises(MalformedMessage, match="element 4 of EVENT is not a list"):
        expected(option.message).receive()
