"""Parsing and serialization of messages in `wamp.2.json`."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.messages.headers import is_allowed
from signalbox.live.wamp import messages
from signalbox.live.wamp.codec import (
    MAXIMUM_DEPTH,
    MAXIMUM_ID,
    MalformedFrame,
    MalformedMessage,
    decode,
    parse,
    serialize,
    size_bytes,
)
from signalbox.live.wamp.messages import Payload


def test_a_revocation_is_an_unsubscribed_with_details() -> None:
    """Advanced profile, «Subscription Revocation»."""
    text = '[35,0,{"subscription":1293722,"reason":"no longer authorized"}]'

    message = parse(text)

    assert message == messages.Unsubscribed(
        messages.RequestId(0), {"subscription": 1293722, "reason": "no longer authorized"}
    )
    assert serialize(message) == text


def test_whitespace_between_elements_is_ignored() -> None:
    assert parse(' [ 32 , 7, { } ,"a.b" ] ') == messages.Subscribe(messages.RequestId(7), {}, "a.b")


def test_a_payload_has_arguments_and_keywords() -> None:
    published = parse('[16,1,{},"a",[1,null,[2.5]],{"k":{}}]')

    assert published == messages.Publish(
        messages.RequestId(1), {}, "a", Payload(arguments=(1, None, [2.5]), keywords={"k": {}})
    )


@pytest.mark.parametrize("rest", ["", ",[]", ",[],{}", ",null", ",null,null"])
def test_an_empty_payload_is_omitted(rest: str) -> None:
    """Basic profile, «Empty Arguments and Keyword Arguments»; some clients send null."""
    message = parse(f'[16,1,{{}},"a"{rest}]')

    assert message == messages.Publish(messages.RequestId(1), {}, "a")
    assert serialize(message) == '[16,1,{},"a"]'


def test_keywords_alone_follow_an_empty_list() -> None:
    assert serialize(parse('[16,1,{},"a",null,{"k":1}]')) == '[16,1,{},"a",[],{"k":1}]'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected JSON"),
        ("[32", "expected JSON"),
        ("[" * 100_000, "expected JSON"),
        ("1" * 5_000, "expected JSON"),
        ("{}", "expected a list that begins with a message type code"),
        ("[]", "expected a list that begins with a message type code"),
        ('"text"', "expected a list that begins with a message type code"),
        ("[7]", "7 is not a message type code"),
        ("[256,{}]", "256 is not a message type code"),
        ("[true,{}]", "True is not a message type code"),
        ("[[],{}]", "[] is not a message type code"),
        ("[-1]", "-1 is not a message type code"),
        ("[32,1,{}]", "SUBSCRIBE has 2 elements after its type, not 3 to 3"),
        ('[32,1,{},"a",[]]', "SUBSCRIBE has 4 elements after its type, not 3 to 3"),
        ('[16,1,{},"a",[],{},1]', "PUBLISH has 6 elements after its type, not 3 to 5"),
        ("[35]", "UNSUBSCRIBED has 0 elements after its type, not 1 to 2"),
        ('[32,"1",{},"a"]', "element 1 of SUBSCRIBE is not an integer from 0 to 9007199254740992"),
        ('[32,true,{},"a"]', "element 1 of SUBSCRIBE is not an integer from 0 to 9007199254740992"),
        ('[32,1.0,{},"a"]', "element 1 of SUBSCRIBE is not an integer from 0 to 9007199254740992"),
        ('[32,-1,{},"a"]', "element 1 of SUBSCRIBE is not an integer from 0 to 9007199254740992"),
        ('[32,1,[],"a"]', "element 2 of SUBSCRIBE is not an object"),
        ('[32,1,null,"a"]', "element 2 of SUBSCRIBE is not an object"),
        ("[32,1,{},2]", "element 3 of SUBSCRIBE is not a string"),
        ('[16,1,{},"a",{}]', "element 4 of PUBLISH is not a list"),
        ('[16,1,{"enc_algo":"cryptobox"},"a","\\u0000gqVj"]', "element 4 of PUBLISH is not a list"),
        ('[16,1,{},"a",[],[]]', "element 5 of PUBLISH is not an object"),
        ('[16,1,{},"a",[NaN]]', "NaN is not a JSON number"),
        ('[16,1,{},"a",[-Infinity]]', "-Infinity is not a JSON number"),
        ('[16,1,{},"a",[1e400]]', "a number is too large for a 64-bit float"),
        *(
            (text, "a string begins with U+0000, which marks binary values, and is not base64 after it")
            for text in (
                r'[16,1,{},"a",["\u0000not base64!"]]',
                r'[16,1,{},"a",[],{"b":[{"c":"\u0000YQ"}]}]',
                r'[16,1,{},"a",["\u0000\u0000\u0001 line"]]',
                r'[16,1,{},"a",["\u0000ü"]]',
                r'[16,1,{"exclude_authid":["\u0000a"]},"a"]',
            )
        ),
        ("[" * 101 + "]" * 101, f"lists and objects are nested more than {MAXIMUM_DEPTH} levels deep"),
    ],
)
def test_the_error_of_a_malformed_message_describes_its_shape(text: str, problem: str) -> None:
    assert decode(text) == MalformedFrame(problem)
    with pytest.raises(MalformedMessage):
        parse(text)


def test_a_message_of_the_maximum_depth_is_parsed() -> None:
    text = '[16,1,{},"a",' + "[" * (MAXIMUM_DEPTH - 1) + "]" * (MAXIMUM_DEPTH - 1) + "]"

    assert serialize(parse(text)) == text


@pytest.mark.parametrize("number", [0, 1, MAXIMUM_ID])
def test_id_0_is_accepted(number: int) -> None:
    assert decode(f'[32,{number},{{}},"a"]') == messages.Subscribe(messages.RequestId(number), {}, "a")


def test_ids_above_2_to_the_53_are_refused() -> None:
    assert isinstance(decode(f'[32,{MAXIMUM_ID + 1},{{}},"a"]'), MalformedFrame)


def test_unknown_options_are_preserved() -> None:
    options: messages.Dictionary = {"_after": 7, "x": None}

    assert parse('[32,1,{"_after":7,"x":null},"a"]') == messages.Subscribe(messages.RequestId(1), options, "a")


@pytest.mark.parametrize("value", ["\0" + "aGVsbG8=", "\0", "no \0 in front", {"\0name": 1}])
def test_binary_strings_are_passed_unchanged(value: str) -> None:
    text = json.dumps([16, 1, {}, "a", [value]], separators=(",", ":"))

    assert serialize(parse(text)) == text


def test_repr_does_not_show_a_ticket() -> None:
    assert "secret" not in repr(parse('[5,"secret",{}]'))


def test_the_size_of_a_message_is_in_bytes() -> None:
    assert size_bytes('["é"]') == 6
    assert size_bytes('["\ud800"]') == 7


texts = st.text(st.characters(codec=None))
# A string that begins with U+0000 and has no base64 after it is refused.
readable = texts.filter(lambda text: not text.startswith("\0"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | readable,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(values, max_size=3), st.dictionaries(texts, values, max_size=3))
def test_any_payload_is_serialized_unchanged_in_characters_that_sqs_accepts(
    arguments: list[object], keywords: dict[str, object]
) -> None:
    event = messages.Event(
        messages.SubscriptionId(1), messages.PublicationId(2), {}, Payload(tuple(arguments), keywords)
    )

    text = serialize(event)

    assert parse(text) == event
    assert is_allowed(text)


@given(st.recursive(st.integers(0, 70) | values, lambda inner: st.lists(inner, max_size=6), max_leaves=20))
def test_any_frame_is_malformed_or_a_message_that_can_be_serialized(document: object) -> None:
    found = decode(json.dumps(document))

    assert isinstance(found, MalformedFrame) or parse(serialize(found)) == found
