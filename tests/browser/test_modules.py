"""The modules of the page, each by itself in a browser."""

import json
import re

import pytest

from stacks.shared.packaging import ROOT

pytestmark = pytest.mark.browser

WEB = ROOT / "web"
NOON = "2026-11-21T12:00:00.000Z"
# Runs a subscription as the page's client does: `life` is its sessions and events in order.
FOLLOW = """async ({uri, options, life, now}) => {
    const { Subscription } = await import("./subscription.js");
    const delivered = [], gaps = [];
    const handlers = { onEvent: (event) => delivered.push(event), onGap: (gap) => gaps.push(gap) };
    const one = new Subscription(uri, options, handlers);
    const requested = [];
    for (const step of life) {
        if (step === "begin") requested.push(one.begin(now));
        else if (step === "caught up") one.caughtUp();
        else one.receive([36, 1, step.publication ?? step._seq * 1000 + (step.topic ?? "").length, step]);
    }
    return { requested, delivered: delivered.map((event) => [event.topic, event.seq]), gaps };
}"""
CHANGES = """async ([before, after]) => {
    const { changes, flatten } = await import("./record.js");
    return changes(flatten(before), flatten(after));
}"""

# Adds parts of logs, each with its topic, text and headers, and returns the lines that are shown in the end.
MERGE = """async (parts) => {
    const { LineFilter, Log } = await import("./lines.js");
    const log = new Log(), filter = new LineFilter(log);
    for (const [topic, text, headers] of parts) {
        log.add({ topic, args: [text], kwargs: {}, headers, at: 0, seq: 1, omittedBytes: null });
        filter.update();
    }
    return filter.shown.map((number) => log.line(number).text);
}"""


@pytest.fixture
def run(visitor):
    visitor.page.goto(visitor.url)
    return lambda program, given=None: visitor.page.evaluate(program, given)


def follow(run, uri: str, life: list[object], **options: object):
    return run(FOLLOW, {"uri": uri, "options": options, "life": life, "now": NOON})


def event(seq: int, topic: str | None = None, **details: object) -> dict[str, object]:
    return {"_seq": seq, "_at": NOON, **({"topic": topic} if topic else {}), **details}


def test_the_modules_are_all_fetched_at_once():
    named = set(re.findall(r'href="\./(\w+\.js)"', (WEB / "index.html").read_text()))

    assert named == {path.name for path in WEB.glob("*.js")} - {"app.js", "renewed.js"}


def test_nothing_is_loaded_from_another_host():
    for path in WEB.iterdir():
        addresses = set(re.findall(r"https?://[^\"'\s)]+", path.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path.name


def test_a_topic_resumes_after_its_last_number_and_drops_duplicates(run):
    life = ["begin", event(3), event(4), event(4), event(3), "caught up", "begin", event(4), event(5)]

    result = follow(run, "a", life, history={"last": 10})

    assert result["requested"] == [{"_history": {"last": 10}}, {"_history": {"after": 4}}]
    assert result["delivered"] == [["a", 3], ["a", 4], ["a", 5]]


def test_a_pattern_resumes_each_topic_after_its_last_number_and_includes_new_topics(run):
    life = ["begin", event(7, "a.b"), event(1, "a.c"), "caught up", "begin", event(7, "a.b"), event(1, "a.d")]

    result = follow(run, "a.", life, match="prefix", history={"last": 10})

    assert result["requested"][1] == {
        "match": "prefix",
        "_history": {"after": {"since": NOON, "topics": {"a.b": 7, "a.c": 1}}},
    }
    assert result["delivered"] == [["a.b", 7], ["a.c", 1], ["a.d", 1]]


def test_a_pattern_whose_history_was_interrupted_requests_it_again(run):
    result = follow(run, "a.", ["begin", event(7, "a.b"), "begin"], match="prefix", history={"last": 10})

    assert result["requested"][1] == result["requested"][0]


def test_topics_that_do_not_fit_into_a_frame_are_requested_by_time(run):
    topics = [f"a.{number:04}.{'x' * 60}" for number in range(500)]
    life = [
        "begin",
        *(event(1, topic) for topic in topics),
        "caught up",
        "begin",
        *(event(1, topic) for topic in topics),
    ]

    result = follow(run, "a.", life, match="prefix")

    after = result["requested"][1]["_history"]["after"]
    assert after["since"] == NOON
    assert set(after["topics"]) < set(topics)
    assert len(json.dumps(result["requested"][1])) < 32_000
    assert len(result["delivered"]) == len(topics)


def test_the_latest_state_does_not_hide_the_history_before_it(run):
    life = ["begin", event(9, retained=True), event(8), event(9), "caught up", "begin"]

    result = follow(run, "a", life, history={"last": 5}, retained=True)

    assert result["requested"] == [
        {"_history": {"last": 5}, "get_retained": True},
        {"_history": {"after": 9}, "get_retained": True},
    ]
    assert [seq for _, seq in result["delivered"]] == [9, 8]


def test_events_without_a_number_are_recognized_by_publication(run):
    meta = [{"publication": 1}, {"publication": 2}, {"publication": 1}]

    assert len(follow(run, "wamp.session.on_join", ["begin", *meta])["delivered"]) == 2


def test_a_gap_is_reported_only_at_the_first_event_after_a_reconnect(run):
    life = ["begin", event(1), event(5), "caught up", "begin", event(9), event(12)]

    assert follow(run, "a", life)["gaps"] == [{"topic": "a", "from": 6, "to": 8}]


@pytest.mark.parametrize(
    ("raw", "text", "parts"),
    [
        ("plain", "plain", None),
        ("\x1b[31mred\x1b[39m not", "red not", ["fg-red"]),
        ("\x1b[1m\x1b[4mboth\x1b[24m bold\x1b[22m", "both bold", ["bold underline", "bold"]),
        ("\x1b[7minverse", "inverse", ["fg-inverse bg-inverse"]),
        ("\x1b[38;5;9mbright \x1b[48;5;21mcube", "bright cube", ["fg-bright-red", "fg-bright-red"]),
        ("\x1b[;mnothing \x1b[38mopen \x1b[999mwild", "nothing open wild", ["fg-black", "fg-black"]),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x1b[2J\x1b[1;1H\x1b(", "link ␛(", None),
        ("a\tb\x00\x7f", "a       b␀␡", None),
        ("  0 %\r 50 %\r100 %", "100 %", None),
    ],
)
def test_terminal_output_is_parsed_into_text_and_styles(run, raw, text, parts):
    result = run("async (raw) => (await import('./ansi.js')).parseLine(raw)", raw)

    assert result["text"] == text
    assert (result["parts"] and [part["classes"] for part in result["parts"]]) == parts


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("2026-11-21 12:00:00 ERROR it broke", "error"),
        ("E1121 12:00:00 error: no such file", None),
        ("error: no such file", "error"),
        ("[warn] hot", "warn"),
        ('{"time":"…","level":"debug","msg":"x"}', "debug"),
        ("level=information x", "info"),
        ("there were no errors and no Warnings", None),
        ("x" * 200 + " ERROR", None),
    ],
)
def test_the_level_is_taken_from_the_start_of_a_line(run, text, level):
    assert run("async (text) => (await import('./lines.js')).levelOf(text)", text) == level


def part(file: str, begin: int, *lines: str, **headers: str) -> list[object]:
    """Return a part of a container's file whose lines begin with a second and a word, or have no time."""
    text = "".join(f"2026-11-26T12:00:0{one[0]}.000000000Z {one[1:]}\n" if one[0].isdigit() else one for one in lines)
    return [f"container.o.c.log.{file}", text, {"begin": str(begin), "end": str(begin + len(text)), **headers}]


LONG = part("stdout", 0, "1a", "3c")
MERGED = {
    "files are merged": ([LONG, part("stderr", 0, "2b", "4d")], "abcd"),
    "a late line is put between": ([LONG, part("stderr", 0, "4d"), part("stderr", 90, "2b")], "acdb"),
    "lines of one time are in the order of their arrival": ([part("stderr", 0, "1b"), LONG], "bac"),
    "a file keeps its order": ([part("stdout", 0, "3a", "1b"), part("stderr", 0, "2c")], "cab"),
    "a line without a time follows the newest": ([LONG, part("node-info", 0, "x\n"), part("stderr", 0, "4d")], "acxd"),
    "a rest follows its beginning": (
        [part("stdout", 0, "1a", unfinished="1"), part("stderr", 0, "2b"), part("stdout", 33, "x\n", unfinished="1")],
        "axb",
    ),
    "a rest without its beginning follows the newest": (
        [LONG, part("stderr", 9, "x\n"), part("stderr", 9, "2b")],
        "acxb",
    ),
    "topics that are no files keep the order of arrival": (
        [[topic, text, {}] for topic, text, _ in [LONG, LONG]],
        None,
    ),
}


@pytest.mark.parametrize(("parts", "letters"), MERGED.values(), ids=MERGED)
def test_files_of_a_container_are_merged_by_time(run, parts, letters):
    lines = run(MERGE, parts)

    assert lines == (list(letters) if letters else "".join(str(text) for _, text, _ in parts).splitlines())


def test_changes_are_listed_by_path(run):
    before = {"state": "Queued", "gone": 1, "deep": {"same": [1, 2], "other": None}}
    after = {"state": "Running", "deep": {"same": [1, 2], "other": {}, "new": False}}

    result = run(CHANGES, [before, after])

    assert [(one["path"], one["kind"]) for one in result] == [
        ("state", "changed"),
        ("deep.other", "changed"),
        ("deep.new", "added"),
        ("gone", "removed"),
    ]
