"""The JSON scanner: what Go's scanner accepts, and its error texts (recorded from Go 1.26)."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signalbox.rendezvous.wire.gojson.scanner import MAXIMUM_DEPTH, InvalidMessage, JsonKind, JsonValue, parse, text_of

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,  # deep enough; more only takes time
)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (b"", "unexpected end of JSON input"),
        (b" \t\r\n", "unexpected end of JSON input"),
        (b"[1", "unexpected end of JSON input"),
        (b"[1,", "unexpected end of JSON input"),
        (b'{"a"', "unexpected end of JSON input"),
        (b'{"a":', "unexpected end of JSON input"),
        (b'"abc', "unexpected end of JSON input"),
        (b"x", "invalid character 'x' looking for beginning of value"),
        (b"NaN", "invalid character 'N' looking for beginning of value"),
        (b"+1", "invalid character '+' looking for beginning of value"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"{1:2}", "invalid character '1' looking for beginning of object key string"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"[1}", "invalid character '}' after array element"),
        (b"{} x", "invalid character 'x' after top-level value"),
        (b"12x", "invalid character 'x' after top-level value"),
        (b"01", "invalid character '1' after top-level value"),
        (b"-", "invalid character ' ' in numeric literal"),
        (b"-a", "invalid character 'a' in numeric literal"),
        (b"1.", "invalid character ' ' after decimal point in numeric literal"),
        (b"1.e1", "invalid character 'e' after decimal point in numeric literal"),
        (b"1e+", "invalid character ' ' in exponent of numeric literal"),
        (b"1ex", "invalid character 'x' in exponent of numeric literal"),
        (b"tru", "invalid character ' ' in literal true (expecting 'e')"),
        (b"falsy", "invalid character 'y' in literal false (expecting 'e')"),
        (b"nil", "invalid character 'i' in literal null (expecting 'u')"),
        (b'"\x00"', "invalid character '\\x00' in string literal"),
        (b'"\n"', "invalid character '\\n' in string literal"),
        (b'"\\x"', "invalid character 'x' in string escape code"),
        (b'"\\u12G4"', "invalid character 'G' in \\u hexadecimal character escape"),
        (b"'a'", "invalid character '\\'' looking for beginning of value"),
        (b"\\", "invalid character '\\\\' looking for beginning of value"),
        (b"\x07", "invalid character '\\a' looking for beginning of value"),
        (b"\x7f", "invalid character '\\x7f' looking for beginning of value"),
        (b"\x85", "invalid character '\\u0085' looking for beginning of value"),
        (b"\xc3\xa9", "invalid character 'Ã' looking for beginning of value"),
        (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
        (b"[" * (MAXIMUM_DEPTH + 1), "invalid character '[' exceeded max depth"),
    ],
)
def test_invalid_json_is_refused_with_gos_error_text(document, problem):
    with pytest.raises(InvalidMessage) as refused:
        parse(document)

    assert str(refused.value) == problem


@pytest.mark.parametrize(
    ("document", "value"),
    [
        (b' "a" ', JsonValue(JsonKind.STRING, "a")),
        (b"-0.5E+3", JsonValue(JsonKind.NUMBER, "-0.5E+3")),
        (b"10e2", JsonValue(JsonKind.NUMBER, "10e2")),
        (b"true", JsonValue(JsonKind.BOOL)),
        (b"false", JsonValue(JsonKind.BOOL)),
        (b"null", JsonValue(JsonKind.NULL)),
        (b"{ }", JsonValue(JsonKind.OBJECT)),
        (b"[ ]", JsonValue(JsonKind.ARRAY)),
    ],
)
def test_a_document_is_any_value(document, value):
    assert parse(document).top == value


def test_the_members_of_the_outermost_object_are_in_order_with_duplicates():
    document = parse(b'{"a": 1, "b": {"c": 2}, "a": [3, {"d": -4}], "": null}')

    assert document.members == (
        ("a", JsonValue(JsonKind.NUMBER, "1")),
        ("b", JsonValue(JsonKind.OBJECT)),
        ("a", JsonValue(JsonKind.ARRAY)),
        ("", JsonValue(JsonKind.NULL)),
    )
    assert document.numbers == ("1", "2", "3", "-4")


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (rb'"\"\\\/\b\f\n\r\t"', '"\\/\b\f\n\r\t'),
        (rb'"\u00e9\u00E9"', "éé"),
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (rb'"\ude00\ud83d"', "\ufffd\ufffd"),
        (rb'"\ud83d"', "\ufffd"),
        (b'"\\ud83d\x98"', "\ufffd\ufffd"),
        (b'"\xe2\x82"', "\ufffd\ufffd"),
        (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
    ],
)
def test_invalid_escapes_and_bytes_are_replaced(document, text):
    assert parse(document).top.text == text


def test_each_invalid_byte_becomes_one_replacement_character():
    assert text_of(b"a\xf0\x9f\x98b\xff\xc3\xa9") == "a\ufffd\ufffd\ufffdb\ufffdé"


def test_nesting_up_to_gos_limit_is_accepted():
    assert parse(b"[" * MAXIMUM_DEPTH + b"]" * MAXIMUM_DEPTH).top == JsonValue(JsonKind.ARRAY)


@given(st.dictionaries(st.text(), values), st.booleans(), st.sampled_from([None, 1]))
def test_every_json_document_is_accepted(members, ascii_only, indent):
    document = parse(json.dumps(members, ensure_ascii=ascii_only, indent=indent).encode())

    assert [key for key, _ in document.members] == list(members)
    assert [value.text for _, value in document.members if value.kind is JsonKind.STRING] == [
        value for value in members.values() if isinstance(value, str)
    ]


@given(st.binary() | st.text('{}[]",:\\u0 1-.eE+tfn\n').map(str.encode))
@example(b"\xff")
def test_only_json_documents_are_accepted(document):
    try:
        json.loads(text_of(document), parse_constant=int)  # refuses NaN and infinities
    except ValueError:
        with pytest.raises(InvalidMessage):
            parse(document)
    else:
        parse(document)
