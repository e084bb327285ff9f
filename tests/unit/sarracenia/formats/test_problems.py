"""Invalid announcements: every problem is named."""

import json

import pytest

from signalbox.sarracenia.formats.announcement import InvalidAnnouncement
from signalbox.sarracenia.formats.payloads import Payload, announcement

LINE = "20231114221320.25 https://e/ a/b.txt"
V03 = {"pubTime": "20231114T221320.25", "baseUrl": "https://e/", "relPath": "a/b.txt"}


@pytest.mark.parametrize(
    ("received", "problems"),
    [
        (Payload("{", {}, "application/json"), ["not JSON"]),
        (Payload("[" * 100_000, {}, "application/json"), ["not JSON"]),
        (Payload("[1]", {}, "application/json"), ["expected a JSON object"]),
        (Payload("{}", {}, "application/json"), ["pubTime: is missing", "baseUrl: is missing", "relPath: is missing"]),
        (
            Payload("one", {}, "text/plain"),
            ["pubTime: 'one' is not a time", "baseUrl: is missing", "relPath: is missing"],
        ),
        (Payload(LINE, {"sum": "q,1"}, None), ["sum: unknown method 'q'"]),
        (Payload(LINE, {"sum": "s,xyz"}, None), ["sum: 'xyz' is not hexadecimal"]),
        *(
            (Payload(LINE, {"parts": parts}, None), [f"parts: {problem}"])
            for parts, problem in [
                ("1,2", "expected 1,SIZE,1,0,0 or"),
                ("x,1,1,0,0", "expected 1,SIZE,1,0,0 or"),
                ("i,1,1,0,-1", "expected 1,SIZE,1,0,0 or"),
                ("i,1,2,0,2", "there are 2 blocks, and no number 2"),
            ]
        ),
    ],
)
def test_an_invalid_announcement_is_refused_with_every_problem(received, problems):
    with pytest.raises(InvalidAnnouncement) as refused:
        announcement(received)

    lines = str(refused.value).splitlines()
    assert len(lines) == len(problems)
    assert all(line.startswith(problem) for line, problem in zip(lines, problems, strict=True))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"pubTime": 3}, "pubTime: expected a text, not 3"),
        ({"mtime": "yesterday"}, "mtime: 'yesterday' is not a time"),
        ({"size": -1}, "size: expected a whole number, not -1"),
        ({"size": True}, "size: expected a whole number, not True"),
        ({"identity": "s"}, "identity: expected an object, not 's'"),
        ({"identity": {"method": "md5", "value": "*"}}, "identity.value: '*' is not base64"),
        ({"content": {"encoding": "gzip", "value": ""}}, "content.encoding: expected 'utf-8' or 'base64', not 'gzip'"),
        ({"content": {"encoding": "utf-8", "value": "a\udc00"}}, "content.value: half of a surrogate pair"),
        ({"content": {"encoding": "utf-8"}}, "content.value: is missing"),
        ({"fileOp": {"hlink": "x"}}, "fileOp.hlink: unknown operation"),
        (
            {"blocks": {"method": "inplace", "size": 1, "number": 0}},
            "blocks.number: there are 0 blocks, and no number 0",
        ),
        ({"blocks": {"method": "inplace", "number": 0, "count": 1}}, "blocks.size: is missing"),
        (
            {"blocks": {"method": "inplace", "size": 1, "number": 0, "count": 1, "manifest": {"a": {}}}},
            "blocks.manifest.a: expected a block's number",
        ),
    ],
)
def test_a_field_that_is_not_as_it_should_be_is_named(fields, problem):
    with pytest.raises(InvalidAnnouncement, match=problem.replace("*", r"\*")):
        announcement(Payload(json.dumps({**V03, **fields}), {}, "application/json"))
