"""A chain of requests is counted by the trace header and ends after 16 invocations of a function."""

import asyncio

from signalbox.local.emulator.weather.calls import Answer, Call
from signalbox.local.emulator.weather.lineage import Lineage, TraceHeaders, is_looping, lineage_of, with_trace_header
from signalbox.local.emulator.weather.patches.recursive_loops import HEADER, stopping_loops


def event(*headers: str) -> dict[str, object]:
    return {"Records": [{"attributes": {"AWSTraceHeader": header} if header else {}} for header in headers]}


def test_a_lineage_survives_its_header():
    lineage = Lineage({}).after("f").after("g").after("f")

    parsed = Lineage.parse(lineage.header())

    assert (parsed.of("f"), parsed.of("g"), parsed.of("h")) == (2, 1, 0)


def test_a_header_without_a_lineage_begins_a_chain():
    assert Lineage.parse("Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1") == Lineage({})
    assert Lineage.parse("Lineage=garbage|a:b") == Lineage({})


def test_the_longest_chain_of_a_batch_counts():
    once, twice = Lineage({}).after("f"), Lineage({}).after("f").after("f")

    assert lineage_of(event(once.header(), twice.header(), ""), "f").of("f") == 2
    assert lineage_of(event(), "f") == lineage_of({}, "f") == lineage_of("text", "f") == Lineage({})
    assert lineage_of({"Records": ["x"]}, "f") == Lineage({})


def test_a_function_that_sends_to_itself_is_stopped_after_sixteen_invocations():
    def run(*, allowed: bool) -> int:
        sent = [""]

        def function(_function: object, _config: object, _event: object) -> dict[str, object]:
            sent.append(HEADER.get())
            return {"body": None}

        dispatch = stopping_loops(function, lambda _name: allowed)
        for count in range(40):
            result = dispatch({}, {"FunctionName": "f"}, event(sent[-1]))
            if result.get("error"):
                assert result["body"]["errorType"] == "RecursiveInvocationException"
                return count
        return 40

    assert run(allowed=False) == 16
    assert run(allowed=True) == 40


def test_the_header_of_an_invocation_ends_with_it():
    stopping_loops(lambda *_: {}, lambda _name: False)({}, {"FunctionName": "f"}, {})

    assert HEADER.get() == ""


def test_another_functions_chain_does_not_stop_a_function():
    lineage = Lineage({})
    for _ in range(16):
        lineage = lineage.after("f")

    assert is_looping(lineage, "f")
    assert not is_looping(lineage, "g")


def test_messages_keep_the_header_of_the_call_that_sends_them():
    header = Lineage({}).after("f").header()

    assert _attributes("SendMessage", header) == {"SenderId": "x", "AWSTraceHeader": header}
    assert _attributes("SendMessageBatch", header) == {"SenderId": "x", "AWSTraceHeader": header}
    assert _attributes("SendMessage", header, AWSTraceHeader="own") == {"SenderId": "x", "AWSTraceHeader": "own"}


def test_other_calls_keep_no_header():
    assert _attributes("ReceiveMessage", Lineage({}).after("f").header()) == {"SenderId": "x"}
    assert _attributes("SendMessage", "Root=1-5759e988-bd862e3fe1be46a994272793") == {"SenderId": "x"}
    assert _attributes("SendMessage", "") == {"SenderId": "x"}


def _attributes(action: str, header: str, **given: str) -> dict[str, str]:
    """Return the system attributes of a message that such a call sends."""
    kept: dict[str, str] = {}

    async def forward(_call: Call) -> Answer:
        kept.update(with_trace_header({"SenderId": "x", **given}))
        return Answer(200)

    headers = {"x-amzn-trace-id": header} if header else {}
    asyncio.run(TraceHeaders().answer(Call("sqs", action, {}, headers), forward))
    return kept
