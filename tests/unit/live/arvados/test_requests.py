"""The frames of Arvados' clients, as services/ws/session_v0.go of arvados/arvados takes them."""

import json

import pytest

from signalbox.live.arvados.requests import BadRequest, SubscribeRequest, UnsubscribeRequest, decode, status

CREATED = '[["event_type","in",["create"]]]'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"method":"subscribe"}', SubscribeRequest()),
        (' {"method": "subscribe", "filters": null, "last_log_id": null, "other": [1]} ', SubscribeRequest()),
        ('{"method":"subscribe","filters":[]}', SubscribeRequest("[]")),
        (f'{{"method":"subscribe","filters":{CREATED},"last_log_id":7}}', SubscribeRequest(CREATED, 7)),
        ('{"Method":"subscribe","Last_Log_ID":-3}', SubscribeRequest(None, -3)),
        (f'{{"method":"unsubscribe","filters":{CREATED}}}', UnsubscribeRequest(CREATED)),
        ('{"method":"unsubscribe"}', UnsubscribeRequest()),
    ],
)
def test_a_request_is_an_object_with_a_method(text: str, expected: object) -> None:
    assert decode(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "no JSON",
            "[]",
            "null",
            "17",
            '"subscribe"',
            "{}",
            '{"method":"publish"}',
            '{"method":5}',
            '{"method":null}',
        ),
        '{"method":"subscribe"} {}',
        '{"method":"subscribe","filters":{}}',
        '{"method":"subscribe","filters":"all"}',
        '{"method":"subscribe","filters":["event_type"]}',
        '{"method":"subscribe","filters":[["a","=",NaN]]}',
        '{"method":"subscribe","filters":[["a","=",1e999]]}',
        '{"method":"subscribe","filters":[["a","=",' + "9" * 400 + "]]}",
        '{"method":"subscribe","last_log_id":"5"}',
        '{"method":"subscribe","last_log_id":5.0}',
        '{"method":"subscribe","last_log_id":true}',
        '{"method":"subscribe","last_log_id":9223372036854775808}',
        '{"method":"subscribe","filters":' + "[" * 100_000 + "]" * 100_000 + "}",
        '[1,"xs_trial.fifo",{}]',
    ],
)
def test_everything_else_is_a_bad_request(text: str) -> None:
    assert decode(text) == BadRequest()


@pytest.mark.parametrize(
    ("one", "other", "are_equal"),
    [
        ([["a", "=", 1]], [["a", "=", 1.0]], True),
        ([["a", "=", 1]], [["a", "=", True]], False),
        ([["a", "=", {"x": 1, "y": [2]}]], [["a", "=", {"y": [2], "x": 1}]], True),
        ([["a", "="]], [["a", "=", None]], True),
        ([["a", "=", 1, 2]], [["a", "=", 1]], True),
        ([None], [[None, None, None]], True),
        ([["a"], ["b"]], [["b"], ["a"]], False),
        ([], None, False),
    ],
)
def test_filters_are_equal_as_go_compares_them(one: object, other: object, *, are_equal: bool) -> None:
    """A filter is an array of three in Go, a number a 64-bit float, and a missing list another than an empty one."""
    first, second = (decode(json.dumps({"method": "unsubscribe", "filters": filters})) for filters in (one, other))

    assert (first == second) is are_equal


def test_the_status_is_written_as_the_original_does() -> None:
    assert (status(200), status(400)) == ('{"status":200}', '{"status":400}')
