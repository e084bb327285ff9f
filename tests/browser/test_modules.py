"""The page's modules by themselves, each in the browser that runs it."""

import json
import re

import pytest

from stacks.shared.packaging import ROOT

pytestmark = pytest.mark.browser

WEB = ROOT / "web"
NOON = "2026-11-21T12:00:00.000Z"
# As the page's client has it: with options, the SUBSCRIBEs and EVENTs of its life are told one after the other.
FOLLOW = """async ({uri, options, life, now}) => {
    const { Subscription } = await import("./subscription.js");
    const got = [], gaps = [];
    const one = new Subscription(uri, options, { onEvent: (event) => got.push(event), onGap: (gap) => gaps.push(gap) });
    const asked = [];
    for (const step of life) {
        if (step === "begin") asked.push(one.begin(now));
        else if (step === "caught up") one.caughtUp();
        else one.take([36, 1, step.publication ?? step._seq * 1000 + (step.topic ?? "").length, step]);
    }
    return { asked, seen: got.map((event) => [event.topic, event.seq]), gaps };
}"""
CHANGES = """async ([before, after]) => {
    const { changes, flat } = await import("./record.js");
    return changes(flat(before), flat(after));
}"""


@pytest.fixture
def run(desk):
    desk.page.goto(desk.url)
    return lambda program, given=None: desk.page.evaluate(program, given)


def follow(run, uri: str, life: list[object], **options: object):
    return run(FOLLOW, {"uri": uri, "options": options, "life": life, "now": NOON})


def event(seq: int, topic: str | None = None, **details: object) -> dict[str, object]:
    return {"_seq": seq, "_at": NOON, **({"topic": topic} if topic else {}), **details}


def test_the_modules_are_all_fetched_at_once():
    named = set(re.findall(r'href="\./(\w+\.js)"', (WEB / "index.html").read_text()))

    assert named == {path.name for path in WEB.glob("*.js")} - {"app.js"}


def test_nothing_is_loaded_from_elsewhere():
    for path in WEB.iterdir():
        addresses = set(re.findall(r"https?://[^\"'\s)]+", path.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path.name


def test_a_topic_goes_on_behind_the_last_number_and_takes_no_event_twice(run):
    life = ["begin", event(3), event(4), event(4), event(3), "caught up", "begin", event(4), event(5)]

    told = follow(run, "a", life, history={"last": 10})

    assert told["asked"] == [{"_history": {"last": 10}}, {"_history": {"after": 4}}]
    assert told["seen"] == [["a", 3], ["a", 4], ["a", 5]]


def test_a_pattern_goes_on_behind_each_topics_own_number_and_with_what_it_has_not_seen(run):
    life = ["begin", event(7, "a.b"), event(1, "a.c"), "caught up", "begin", event(7, "a.b"), event(1, "a.d")]

    told = follow(run, "a.", life, match="prefix", history={"last": 10})

    assert told["asked"][1] == {
        "match": "prefix",
        "_history": {"after": {"since": NOON, "topics": {"a.b": 7, "a.c": 1}}},
    }
    assert told["seen"] == [["a.b", 7], ["a.c", 1], ["a.d", 1]]


def test_a_pattern_that_has_not_got_all_of_the_past_asks_for_it_again(run):
    told = follow(run, "a.", ["begin", event(7, "a.b"), "begin"], match="prefix", history={"last": 10})

    assert told["asked"][1] == told["asked"][0]


def test_of_more_topics_than_fit_some_are_named_and_the_rest_is_asked_for_by_time(run):
    topics = [f"a.{number:04}.{'x' * 60}" for number in range(500)]
    life = [
        "begin",
        *(event(1, topic) for topic in topics),
        "caught up",
        "begin",
        *(event(1, topic) for topic in topics),
    ]

    told = follow(run, "a.", life, match="prefix")

    after = told["asked"][1]["_history"]["after"]
    assert after["since"] == "2026-11-21T11:50:00.000Z"
    assert set(after["topics"]) < set(topics)
    assert len(json.dumps(told["asked"][1])) < 32_000
    assert len(told["seen"]) == len(topics)


def test_the_latest_state_does_not_hide_the_history_before_it(run):
    life = ["begin", event(9, retained=True), event(8), event(9), "caught up", "begin"]

    told = follow(run, "a", life, history={"last": 5}, retained=True)

    assert told["asked"] == [{"_history": {"last": 5}, "get_retained": True}, {"_history": {"after": 9}}]
    assert [seq for _, seq in told["seen"]] == [9, 8, 9]


def test_events_without_a_number_are_known_by_their_publication(run):
    meta = [{"publication": 1}, {"publication": 2}, {"publication": 1}]

    assert len(follow(run, "wamp.session.on_join", ["begin", *meta])["seen"]) == 2


def test_a_gap_is_told_only_of_the_first_event_after_a_return(run):
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
def test_what_is_written_for_terminals(run, raw, text, parts):
    told = run("async (raw) => (await import('./ansi.js')).parsed(raw)", raw)

    assert told["text"] == text
    assert (told["parts"] and [part["classes"] for part in told["parts"]]) == parts


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
def test_a_level_is_what_a_lines_beginning_says(run, text, level):
    assert run("async (text) => (await import('./lines.js')).levelOf(text)", text) == level


def test_changes_are_told_by_path(run):
    before = {"state": "Queued", "gone": 1, "deep": {"same": [1, 2], "other": None}}
    after = {"state": "Running", "deep": {"same": [1, 2], "other": {}, "new": False}}

    told = run(CHANGES, [before, after])

    assert [(one["path"], one["kind"]) for one in told] == [
        ("state", "changed"),
        ("deep.other", "changed"),
        ("deep.new", "added"),
        ("gone", "removed"),
    ]
