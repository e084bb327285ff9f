"""The JSON scanner: what Go's scanner accepts, and its error texts (recorded from Go 1.26)."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signalbox.rendezvous.wire.gojson.scanner import MAXIMUM_DEPTH, InvalidJson, Kind, Value, parse, text_of

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,  # deep enough: the rest is time
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
def test_what_is_no_json_is_refused_in_the_words_of_go(document, problem):
    with pytest.raises(InvalidJson) as refused:
        parse(document)

    assert str(refused.value) == problem


@pytest.mark.parametrize(
    ("document", "value"),
    [
        (b' "a" ', Value(Kind.STRING, "a")),
        (b"-0.5E+3", Value(Kind.NUMBER, "-0.5E+3")),
        (b"10e2", Value(Kind.NUMBER, "10e2")),
        (b"true", Value(Kind.BOOL)),
        (b"false", Value(Kind.BOOL)),
        (b"null", Value(Kind.NULL)),
        (b"{ }", Value(Kind.OBJECT)),
        (b"[ ]", Value(Kind.ARRAY)),
    ],
)
def test_a_document_is_any_value(document, value):
    assert parse(document).top == value


def test_the_members_of_the_outermost_object_come_in_their_order_with_duplicates():
    document = parse(b'{"a": 1, "b": {"c": 2}, "a": [3, {"d": -4}], "": null}')

    assert document.members == (
        ("a", Value(Kind.NUMBER, "1")),
        ("b", Value(Kind.OBJECT)),
        ("a", Value(Kind.ARRAY)),
        ("", Value(Kind.NULL)),
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
def test_escapes_and_bytes_that_are_no_unicode_are_replaced(document, text):
    assert parse(document).top.text == text


def test_text_has_one_replacement_for_each_wrong_byte():
    assert text_of(b"a\xf0\x9f\x98b\xff\xc3\xa9") == "a\ufffd\ufffd\ufffdb\ufffdé"


def test_nesting_as_deep_as_go_allows_is_read():
    assert parse(b"[" * MAXIMUM_DEPTH + b"]" * MAXIMUM_DEPTH).top == Value(Kind.ARRAY)


@given(st.dictionaries(st.text(), values), st.booleans(), st.sampled_from([None, 1]))
def test_whatever_is_json_is_read(members, ascii_only, indent):
    document = parse(json.dumps(members, ensure_ascii=ascii_only, indent=indent).encode())

    assert [key for key, _ in document.members] == list(members)
    assert [value.text for _, value in document.members if value.kind is Kind.STRING] == [
        value for value in members.values() if isinstance(value, str)
    ]


@given(st.binary() | st.text('{}[]",:\\u0 1-.eE+tfn\n').map(str.encode))
@example(b"\xff")
def test_exactly_what_is_json_is_read(document):
    try:
        json.loads(text_of(document), parse_constant=int)  # refuses NaN and its like, which Python knows besides JSON
    except ValueError:
        with pytest.raises(InvalidJson):
            parse(document)
    else:
        parse(document)
