"""The parsing of bindings and keys from files."""

import pytest

from signalbox.exchange.matching.binding_files import matches, parse_routing_keys
from signalbox.exchange.model.bindings import DeclaredName, FileBinding, InvalidBindings, parse_bindings
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.topics import InvalidRoutingKey, RoutingKey


def test_a_queue_may_have_several_bindings_and_the_empty_pattern():
    document = [{"queue": "q", "pattern": "a.#"}, {"queue": "q", "pattern": ""}]

    assert parse_bindings(document) == (
        FileBinding(DeclaredName("q"), Pattern(("a", "#"))),
        FileBinding(DeclaredName("q"), Pattern(())),
    )


def test_all_problems_of_the_bindings_are_reported_at_once():
    document = [
        {"queue": "fine", "pattern": "a"},
        {"queue": "q", "pattern": "#.#.#"},
        {"queue": "", "pattern": 1, "exchange": "x"},
        {"pattern": None},
        "a.#",
        {"queue": "q" * 256, "pattern": "a"},
    ]

    with pytest.raises(InvalidBindings) as refused:
        parse_bindings(document)

    assert str(refused.value).splitlines() == [
        "bindings[1].pattern: pattern '#.#.#' uses '#' 3 times; at most 2 are allowed in a new binding",
        "bindings[2]: unknown field 'exchange'; known here: queue, pattern",
        "bindings[2].queue: expected a queue name, not ''",
        "bindings[2].pattern: expected a text, not 1",
        "bindings[3].queue: expected a queue name, not None",
        "bindings[3].pattern: expected a text, not None",
        "bindings[4]: expected an object with queue and pattern, not 'a.#'",
        f"bindings[5].queue: '{'q' * 256}' has 256 bytes of UTF-8; at most 255 are allowed",
    ]


@pytest.mark.parametrize("document", [{"queue": "q", "pattern": "a"}, "a", None])
def test_bindings_are_a_list(document):
    with pytest.raises(InvalidBindings, match="expected a list of objects with queue and pattern, not"):
        parse_bindings(document)


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        (b"", ()),
        (b"\n", ("",)),
        (b"a.b", ("a.b",)),
        (b"a.b\n", ("a.b",)),
        (b"\n\na\n", ("", "", "a")),
        ("é.\x85\u2028\r\n b \n".encode(), ("é.\x85\u2028\r", " b ")),
    ],
)
def test_a_key_is_all_of_a_line_and_an_empty_line_the_empty_key(lines, keys):
    assert parse_routing_keys(lines) == keys


def test_all_problems_of_the_keys_are_reported_at_once():
    with pytest.raises(InvalidRoutingKey) as refused:
        parse_routing_keys(b"a\n" + b"b" * 256 + b"\n\xff\n")

    too_long, not_text = str(refused.value).splitlines()
    assert too_long == f"line 2: routing key '{'b' * 256}' has 256 bytes of UTF-8; at most 255 are allowed"
    assert not_text.startswith("line 3: 'utf-8' codec can't decode byte 0xff")


def test_the_queues_of_a_match_are_in_the_order_of_their_names():
    bindings = parse_bindings([{"queue": queue, "pattern": pattern} for queue, pattern in ("z#", "b*", "ba", "aa")])

    found = [match.as_document() for match in matches([RoutingKey("a"), RoutingKey("")], bindings)]

    assert found == [{"key": "a", "queues": ["a", "b", "z"]}, {"key": "", "queues": ["z"]}]
