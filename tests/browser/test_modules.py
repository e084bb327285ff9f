"""The modules of the page, each by itself in a browser."""

import re

import pytest

from stacks.shared.packaging import ROOT

pytestmark = pytest.mark.browser

WEB = ROOT / "web"
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


# Gives events as [number, publication] to a position; returns the publications that are new.
RECEIVE = """async (events) => {
    const { Cursor } = await import("./cursor.js");
    const cursor = new Cursor("a", "exact", null);
    cursor.begin();
    const fields = { topic: "a", at: 0, isRetained: false };
    return events.filter(([seq, publication]) => cursor.receive({ ...fields, seq, publication })).map(([, id]) => id);
}"""


@pytest.fixture
def run(visitor):
    visitor.page.goto(visitor.url)
    return lambda program, given=None: visitor.page.evaluate(program, given)


def test_the_modules_are_all_fetched_at_once():
    named = set(re.findall(r'href="\./(\w+\.js)"', (WEB / "index.html").read_text()))

    assert named == {path.name for path in WEB.glob("*.js")} - {"app.js", "renewed.js"}


def test_nothing_is_loaded_from_another_host():
    for path in WEB.iterdir():
        addresses = set(re.findall(r"https?://[^\"'\s)]+", path.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path.name


def test_an_event_is_shown_once_also_if_it_was_published_again_with_another_number(run):
    assert run(RECEIVE, [[1, 7], [2, 8], [2, 8], [3, 7], [None, 5], [None, 5], [4, 9]]) == [7, 8, 5, 9]


def test_no_pattern_is_tried_anew_at_each_of_many_equal_characters():
    """A pattern that begins with a repetition and ends with the line takes the square of the time."""
    trimming = re.compile(r"(?<![\w*])/(?!\^)(?:\\.|\[[^]]*\]|\w)[+*]\$/")

    assert [found for path in WEB.glob("*.js") for found in trimming.findall(path.read_text())] == []


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
        ("\r" * 200_000 + "a" + "\r" * 200_000, "a", None),
        ("\x1b[" + "1;" * 200_000 + "31mred", "red", ["bold fg-red"]),
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


@pytest.mark.parametrize(("lines", "shown"), [(1_001, 1_001), (1_002, 1_001), (100_000, 1_001)])
def test_an_event_of_many_lines_does_not_push_out_those_of_others(run, lines, shown):
    script = """async ([text, headers]) => {
      const event = { topic: "a.b", seq: 1, at: 0, args: [text], kwargs: {}, headers, omittedBytes: null };
      const found = (await import('./lines.js')).linesOf(event);
      return [found.length, found.at(-1).text];
    }"""

    found, last = run(script, ["x\n" * lines, {}])

    assert found == shown
    assert last == ("x" if lines == shown else f"({lines - 1_000} more lines: select one for the whole event)")
    assert run(script, ["x\n" * lines, {"begin": "0"}]) == [lines, "x"]


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
