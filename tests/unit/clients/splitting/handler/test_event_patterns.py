"""Filter criteria of event source mappings."""

import json
from typing import Any

import pytest

from signalbox.clients.splitting.handler.event_patterns import FilterCriteria, InvalidEventPattern


def criteria(*patterns: object) -> FilterCriteria:
    return FilterCriteria.parse({"Filters": [{"Pattern": json.dumps(one)} for one in patterns]})


def record(body: object, **more: Any) -> dict[str, Any]:
    return {"body": body if isinstance(body, str) else json.dumps(body), "awsRegion": "us-east-1", **more}


def test_without_filters_every_record_passes():
    assert FilterCriteria.parse({}).accept(record("hello"))
    assert FilterCriteria.parse({"Filters": []}).accept(record("hello"))


# https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html#filtering-syntax
@pytest.mark.parametrize(
    ("pattern", "body", "passes"),
    [
        ({"kind": ["meme"]}, {"kind": "meme"}, True),
        ({"kind": ["meme"]}, {"kind": "song"}, False),
        ({"kind": ["meme"]}, {}, False),
        ({"kind": ["meme", "song"]}, {"kind": "song"}, True),
        ({"kind": ["meme"]}, {"kind": ["song", "meme"]}, True),
        ({"a": {"b": [1]}}, {"a": {"b": 1.0}}, True),
        ({"a": {"b": [1]}}, {"a": 1}, False),
        ({"a": [True]}, {"a": 1}, False),
        ({"a": [True]}, {"a": True}, True),
        ({"a": [None]}, {"a": None}, True),
        ({"a": [None]}, {}, False),
        ({"a": [""]}, {"a": ""}, True),
        ({"a": [1], "b": [2]}, {"a": 1, "b": 3}, False),
        ({"$or": [{"a": [1]}, {"b": [2]}]}, {"a": 3, "b": 2}, True),
        ({"$or": [{"a": [1]}, {"b": [2]}]}, {"a": 3, "b": 3}, False),
        ({"a": [{"equals-ignore-case": "Alice"}]}, {"a": "aLICE"}, True),
        ({"a": [{"prefix": "us-"}]}, {"a": "us-east-1"}, True),
        ({"a": [{"prefix": "us-"}]}, {"a": 7}, False),
        ({"a": [{"prefix": {"equals-ignore-case": "US-"}}]}, {"a": "us-east-1"}, True),
        ({"a": [{"suffix": ".png"}]}, {"a": "cat.png"}, True),
        ({"a": [{"suffix": {"equals-ignore-case": ".PNG"}}]}, {"a": "cat.png"}, True),
        ({"a": [{"anything-but": ["x", "y"]}]}, {"a": "z"}, True),
        ({"a": [{"anything-but": ["x", "y"]}]}, {"a": "x"}, False),
        ({"a": [{"anything-but": {"prefix": "x"}}]}, {"a": "xy"}, False),
        ({"a": [{"anything-but": "x"}]}, {}, False),
        ({"a": [{"exists": True}]}, {"a": 0}, True),
        ({"a": [{"exists": True}]}, {"a": {"b": 1}}, False),  # only a leaf exists
        ({"a": [{"exists": False}]}, {}, True),
        ({"a": [{"numeric": [">", 10, "<=", 20]}]}, {"a": 20}, True),
        ({"a": [{"numeric": [">", 10, "<=", 20]}]}, {"a": 10}, False),
        ({"a": [{"numeric": ["=", 10]}]}, {"a": "10"}, False),
        ({"a": [{"numeric": [">=", 1, "<", 2]}]}, {"a": 1.5}, True),
    ],
)
def test_rules_on_the_body_match_as_lambda_documents(pattern, body, passes):
    assert criteria({"body": pattern}).accept(record(body)) is passes


@pytest.mark.parametrize(
    ("pattern", "body", "passes"),
    [
        ({"body": ["hello"]}, "hello", True),
        ({"body": ["hello"]}, "other", False),
        ({"body": {"a": [1]}}, "plain", False),
        ({"body": {"a": [1]}}, "[" * 100_000, False),
        ({"body": ['{"a": 1}']}, '{"a": 1}', False),
        ({"awsRegion": ["us-east-1"]}, "plain", True),
        ({"awsRegion": ["us-east-1"]}, '{"a": 1}', True),
    ],
)
def test_a_body_of_another_form_than_its_pattern_never_passes(pattern, body, passes):
    assert criteria(pattern).accept(record(body)) is passes


def test_one_of_several_filters_is_enough():
    assert criteria({"body": {"a": [1]}}, {"body": {"a": [2]}}).accept(record({"a": 2}))


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("{", "is not JSON"),
        ("[]", "is not an object"),
        ('{"body": "x"}', "the rules of 'body' are not a list"),
        ('{"body": {"a": [{"cidr": "10.0.0.0/8"}]}}', "is not supported"),
        ('{"body": {"a": [{}]}}', "is not supported"),
        ('{"body": {"a": [{"prefix": "a", "suffix": "b"}]}}', "is not supported"),
        ('{"body": {"a": [{"numeric": ["~", 1]}]}}', "is not supported"),
        ('{"body": {"a": [{"numeric": [">"]}]}}', "is not supported"),
        ('{"$or": [{"a": [{"cidr": "10.0.0.0/8"}]}]}', "is not supported"),
    ],
)
def test_an_invalid_pattern_is_refused(pattern, problem):
    with pytest.raises(InvalidEventPattern, match=problem):
        FilterCriteria.parse({"Filters": [{"Pattern": pattern}]})
