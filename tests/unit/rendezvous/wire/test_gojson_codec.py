"""Messages decoded and encoded as Go does."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.rendezvous.wire.gojson.codec import FieldType, Struct, decode_map, encode
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage, JsonKind, JsonValue

MESSAGE = Struct(
    package="messages",
    name="Message",
    fields={
        "Sid": FieldType.TEXT,
        "Clients": FieldType.INTEGER,
        "Pattern": FieldType.OPTIONAL_TEXT,
        "task": FieldType.TEXT,
    },
)


def test_an_unset_field_has_the_zero_value():
    record = MESSAGE.decode(b"{}")

    assert (record.text("Sid"), record.integer("Clients"), record.optional_text("Pattern")) == ("", 0, None)


@pytest.mark.parametrize("name", ["Sid", "sid", "SID", "\u017fid"])
def test_a_name_counts_in_any_case(name):
    assert MESSAGE.decode(json.dumps({name: "x"}).encode()).text("Sid") == "x"


def test_the_kelvin_sign_is_a_k():
    assert MESSAGE.decode(json.dumps({"TAS\u212a": "x"}).encode()).text("task") == "x"


@pytest.mark.parametrize("name", ["s\u0131d", "S\u0130D", "sid ", "\ufb01d"])
def test_a_similar_looking_letter_does_not_match(name):
    assert MESSAGE.decode(json.dumps({name: "x"}).encode()).text("Sid") == ""


def test_the_last_duplicate_wins():
    assert MESSAGE.decode(b'{"Sid":"a","sid":"b"}').text("Sid") == "b"


def test_null_leaves_a_text_or_number_unchanged_and_unsets_an_optional_text():
    record = MESSAGE.decode(b'{"Sid":"a","Clients":1,"Pattern":"p","Sid":null,"Clients":null,"Pattern":null}')

    assert (record.text("Sid"), record.integer("Clients"), record.optional_text("Pattern")) == ("a", 1, None)


def test_unknown_fields_of_any_type_are_ignored():
    assert MESSAGE.decode(b'{"x":1e999,"Sid":"a","y":{"Sid":"b"}}').text("Sid") == "a"


def test_null_is_an_empty_message():
    assert MESSAGE.decode(b"null").text("Sid") == ""


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (b"7", "json: cannot unmarshal number into Go value of type messages.Message"),
        (b'""', "json: cannot unmarshal string into Go value of type messages.Message"),
        (b"true", "json: cannot unmarshal bool into Go value of type messages.Message"),
        (b"[]", "json: cannot unmarshal array into Go value of type messages.Message"),
        (b'{"sid":1}', "json: cannot unmarshal number into Go struct field Message.Sid of type string"),
        (b'{"Sid":false}', "json: cannot unmarshal bool into Go struct field Message.Sid of type string"),
        (b'{"Sid":{}}', "json: cannot unmarshal object into Go struct field Message.Sid of type string"),
        (b'{"Sid":[]}', "json: cannot unmarshal array into Go struct field Message.Sid of type string"),
        (b'{"Pattern":1}', "json: cannot unmarshal number into Go struct field Message.Pattern of type string"),
        (b'{"Clients":"1"}', "json: cannot unmarshal string into Go struct field Message.Clients of type int"),
        (b'{"Clients":1.0}', "json: cannot unmarshal number 1.0 into Go struct field Message.Clients of type int"),
        (b'{"Clients":1e3}', "json: cannot unmarshal number 1e3 into Go struct field Message.Clients of type int"),
        (
            b'{"Clients":9223372036854775808}',
            "json: cannot unmarshal number 9223372036854775808 into Go struct field Message.Clients of type int",
        ),
        (b'{"Sid":1,"Clients":"2"} x', "invalid character 'x' after top-level value"),
    ],
)
def test_a_message_of_another_shape_is_refused_with_gos_error_text(document, problem):
    with pytest.raises(InvalidMessage) as refused:
        MESSAGE.decode(document)

    assert str(refused.value) == problem


def test_a_number_of_64_digits_is_quoted_in_full():
    with pytest.raises(InvalidMessage, match=f"number {'9' * 64} into"):
        MESSAGE.decode(b'{"Clients":' + b"9" * 64 + b"}")


def test_a_longer_number_is_refused_and_quoted_in_part():
    with pytest.raises(InvalidMessage) as refused:
        MESSAGE.decode(b'{"Clients":' + b"9" * 10_000 + b"}")

    assert str(refused.value) == (
        f"json: cannot unmarshal number {'9' * 64}… into Go struct field Message.Clients of type int"
    )


@given(st.integers(-(2**63), 2**63 - 1))
def test_each_integer_of_64_bits_is_read(number):
    assert MESSAGE.decode(b'{"Clients":%d}' % number).integer("Clients") == number


def test_the_members_of_a_map_are_returned_unchanged():
    assert decode_map(b'{"a":"b","A":1,"a":"c"}') == {
        "a": JsonValue(JsonKind.STRING, "c"),
        "A": JsonValue(JsonKind.NUMBER, "1"),
    }


def test_html_and_javascript_special_characters_are_escaped():
    assert encode({"a": "<b>&\u2028\u2029", "<": 1, "n": None}) == (
        r'{"a":"\u003cb\u003e\u0026\u2028\u2029","\u003c":1,"n":null}'
    )


def test_control_characters_are_escaped_and_the_rest_is_left():
    assert encode({"a": '\x00\b\t\n\f\r\x1f\x7f"\\/é😀\ufffd'}) == (
        '{"a":"\\u0000\\b\\t\\n\\f\\r\\u001f\x7f\\"\\\\/é😀\ufffd"}'
    )


def test_a_lone_surrogate_becomes_the_replacement():
    assert encode({"a": "x\ud800y\udcff"}) == r'{"a":"x\ufffdy\ufffd"}'


@given(st.dictionaries(st.text(), st.text() | st.none() | st.integers()))
def test_an_encoded_object_is_json_of_the_same_members(members):
    assert json.loads(encode(members)) == members
