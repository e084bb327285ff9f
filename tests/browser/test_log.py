"""The log: following, pausing, searching, filtering, and a hundred thousand lines."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.site import shown
from tests.patience import wait_for

pytestmark = pytest.mark.browser

LINES = 100_000
TOP = "document.querySelector('.log').scrollTop"


def test_a_log_begins_with_its_history_and_continues_live(router, visitor):
    for number in range(3):
        router.publish("trial.log", f"before {number}")
    page = visitor.log("trial.log")
    expect(page.locator(".row .text").last).to_have_text("before 2")

    router.publish("trial.log", "and after")

    expect(page.get_by_text("and after")).to_be_visible()
    assert visitor.texts() == ["before 0", "before 1", "before 2", "and after"]


CONTAINER = "trial.container.zzzzz-j7d0g-0.zzzzz-dz642-0.log."


def publish_part(router, file: str, *lines: tuple[float, str], **headers: str) -> None:
    """Publish lines of a container's file; each has the second after noon at which it began."""
    text = "".join(f"2026-11-26T12:00:{second:012.9f}Z {line}" for second, line in lines)
    router.publish_message(f"{CONTAINER}{file}", shown(text), {"begin": "0", "end": "9", **headers})


def test_the_files_of_a_container_are_merged_by_time_and_shown_by_file(router, visitor):
    """As in Workbench's panel, but across polls, and with the rest of a line that was cut."""
    publish_part(router, "stderr", (2.5, "two\n"), (4, "four\n"))
    page = visitor.log(f"{CONTAINER}*")
    expect(page.get_by_text("four")).to_be_visible()
    files = page.get_by_label("Show files")
    expect(files).to_be_hidden()

    publish_part(router, "stdout", (1, "one\n"), (3, "thr"), unfinished="1")
    publish_part(router, "hoststat", (2.75, "load 0.1\n"))
    router.publish_message(f"{CONTAINER}stdout", '"ee\\n"', {"begin": "9", "end": "12"})
    router.publish_message(f"{CONTAINER}stdout", '""', {"begin": "0", "end": "0", "cut_back_from": "72"})

    shorter = "(the file became shorter: 72 bytes of it were shown, 0 are left)"
    lines = [("stdout", "one"), ("stderr", "two"), ("hoststat", "load 0.1"), ("stdout", "thr"), ("stdout", "ee")]
    lines += [("stderr", "four"), ("stdout", shorter)]
    expect(page.get_by_text(shorter)).to_be_visible()
    assert visitor.texts() == [f"{file} {text}" for file, text in lines]
    assert page.locator(".row .time").nth(1).inner_text().endswith(":02.500")
    for choice, others in (("Main files", {"hoststat"}), ("stderr", {"hoststat", "stdout"}), ("All files", set())):
        files.select_option(choice)
        expected = [f"{file} {text}" for file, text in lines if file not in others]
        wait_for(lambda expected=expected: visitor.texts() == expected, choice)


def test_a_late_line_and_another_filter_leave_the_line_that_one_reads_where_it_is(router, visitor):
    publish_part(router, "stdout", *((second, f"line {second}\n") for second in range(1, 60)))
    publish_part(router, "stdout", *((59.5 + number / 1000, f"line {number}\n") for number in range(60, 400)))
    page = visitor.log(f"{CONTAINER}*")
    expect(page.get_by_text("line 399")).to_be_visible()
    page.get_by_label("Search in the log").fill("line 200")
    page.keyboard.press("Enter")
    selected = page.locator(".row[aria-selected=true]")
    expect(selected).to_contain_text("line 200")
    before = selected.bounding_box()

    publish_part(router, "stderr", *((number / 10, f"late {number}\n") for number in range(100)))
    expect(page.locator(".lines")).to_have_text("499 lines")
    wait_for(lambda: selected.bounding_box() == before, "the line is where it was")
    page.get_by_label("Show files").select_option("stdout")

    expect(page.locator(".lines")).to_have_text("399 of 499 lines")
    expect(selected).to_contain_text("line 200")
    assert selected.bounding_box() == before


# To scroll through all of a log, a frame at a time.
SCROLL = """async () => {
    const log = document.querySelector(".log");
    for (let step = 0; step < 100; step++) {
        log.scrollTop = (log.scrollHeight * step) / 100;
        log.dispatchEvent(new Event("scroll"));
        await new Promise(requestAnimationFrame);
    }
}"""


@pytest.fixture
def executions(visitor):
    """A function that runs a program and returns how often blocks of the page's own scripts were executed meanwhile."""
    session = visitor.page.context.new_cdp_session(visitor.page)
    session.send("Profiler.enable")
    # Before the page is opened, since blocks are counted in scripts that are loaded later.
    session.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": True})

    def count(program: str) -> int:
        session.send("Profiler.takePreciseCoverage")  # counts begin anew
        visitor.page.evaluate(program)
        scripts = session.send("Profiler.takePreciseCoverage")["result"]
        return sum(
            block["count"]
            for script in scripts
            if script["url"].endswith(".js")
            for function in script["functions"]
            for block in function["ranges"]
        )

    return count


@pytest.mark.release
def test_scrolling_a_hundred_thousand_lines_is_no_more_work_than_ten_thousand(router, visitor, executions):
    page = visitor.log("trial.log")

    def publish(first: int, last: int) -> None:
        for begin in range(first, last, 1_000):
            router.publish(
                "trial.log", "\n".join(f"line {number} of the log" for number in range(begin, begin + 1_000))
            )
        expect(page.locator(".lines")).to_have_text(f"{last:,} lines")
        expect(page.get_by_text(f"line {last - 1} of", exact=False)).to_be_visible()

    publish(0, 10_000)  # enough for each step to show other lines
    of_few = executions(SCROLL)
    page.get_by_role("listbox").focus()
    page.keyboard.press("End")
    publish(10_000, LINES)
    of_many = executions(SCROLL)

    assert page.locator(".row").count() < 120
    assert of_few > 100  # the steps of the program
    assert of_many < 1.5 * of_few

    page.get_by_label("Search in the log").fill("line 77777 ")
    expect(page.locator(".found")).to_have_text("1 match")
    page.keyboard.press("Enter")
    expect(page.get_by_role("option", selected=True)).to_contain_text("line 77777 of the log")


def test_scrolling_up_ends_following(router, visitor):
    router.publish("trial.log", "\n".join(f"old {number}" for number in range(500)))
    page = visitor.log("trial.log")
    expect(page.get_by_text("old 499")).to_be_visible()
    end = page.evaluate(TOP)
    page.locator(".log").hover()
    page.mouse.wheel(0, -4000)
    expect(page.get_by_role("button", name="↓ Follow")).to_be_visible()
    # The page stops following as the wheel turns; the browser scrolls some frames later.
    wait_for(lambda: page.evaluate(f"end => Math.abs({TOP} - (end - 4000)) < 1", end), "the log has scrolled")
    before = page.evaluate(TOP)

    router.publish("trial.log", "\n".join(f"new {number}" for number in range(100)))

    expect(page.locator(".lines")).to_have_text("600 lines")
    assert page.evaluate(TOP) == before
    page.get_by_role("button", name="↓ Follow").click()
    expect(page.get_by_text("new 99")).to_be_visible()
    router.publish("trial.log", "the newest")
    expect(page.get_by_text("the newest")).to_be_visible()


def test_a_selection_has_the_lines_in_their_order_wherever_they_were_scrolled(router, visitor):
    router.publish("trial.log", "\n".join(f"line {number}" for number in range(500)))
    page = visitor.log("trial.log")
    expect(page.get_by_text("line 499")).to_be_visible()
    page.locator(".log").hover()

    for turn in (-1_000, -3_000, 2_500, -1_200):
        top = page.evaluate(TOP)
        page.mouse.wheel(0, turn)
        wait_for(lambda top=top, turn=turn: page.evaluate(TOP) == top + turn, "the log has scrolled")
    page.evaluate("() => getSelection().selectAllChildren(document.querySelector('.canvas'))")

    lines = [int(number) for number in re.findall(r"line (\d+)", page.evaluate("() => getSelection().toString()"))]
    assert lines == list(range(lines[0], lines[-1] + 1))
    assert len(lines) > 40


def test_the_scrolling_of_the_page_itself_does_not_undo_a_turn_of_the_wheel(router, visitor):
    router.publish("trial.log", "\n".join(f"old {number}" for number in range(500)))
    page = visitor.log("trial.log")
    expect(page.get_by_text("old 499")).to_be_visible()

    # The scroll event of the page's own scrolling comes a frame late, when the wheel may have turned already.
    page.locator(".log").dispatch_event("wheel", {"deltaY": -1})
    page.locator(".log").dispatch_event("scroll")

    expect(page.get_by_role("button", name="↓ Follow")).to_be_visible()


def test_a_log_that_fits_keeps_following_after_a_turn_of_the_wheel(router, visitor):
    router.publish("trial.log", "all of it")
    page = visitor.log("trial.log")
    expect(page.get_by_text("all of it")).to_be_visible()
    page.locator(".log").hover()
    page.mouse.wheel(0, -100)

    router.publish("trial.log", "\n".join(f"more {number}" for number in range(500)))

    expect(page.get_by_text("more 499")).to_be_visible()


def test_a_pause_holds_new_lines_back_and_loses_none(router, visitor):
    page = visitor.log("trial.log")
    router.publish("trial.log", "first")
    expect(page.get_by_text("first")).to_be_visible()
    page.get_by_label("Hold new lines back").click()

    for number in range(3):
        router.publish("trial.log", f"held {number}")

    expect(page.get_by_role("button", name="Paused · 3 new lines")).to_be_visible()
    assert visitor.texts() == ["first"]
    page.get_by_role("button", name="Paused · 3 new lines").click()
    expect(page.get_by_text("held 2")).to_be_visible()
    assert visitor.texts() == ["first", "held 0", "held 1", "held 2"]


def test_a_search_counts_marks_and_steps_through_matches(router, visitor):
    for number in range(50):
        router.publish("trial.log", f"line {number} {'Needle' if number % 10 == 5 else 'hay'}")
    page = visitor.log("trial.log")

    page.get_by_label("Search in the log").fill("needle")

    expect(page.locator(".found")).to_have_text("5 matches")
    selected = page.get_by_role("option", selected=True)
    for key, place, line in (
        ("Enter", "5 of 5", "line 45"),
        ("Enter", "1 of 5", "line 5"),
        ("Shift+Enter", "5 of 5", "line 45"),
    ):
        page.keyboard.press(key)
        expect(page.locator(".found")).to_have_text(place)
        expect(selected).to_contain_text(line)
    expect(selected.locator("mark")).to_have_text("Needle")
    page.get_by_label("Show only lines that match").click()
    expect(page.locator(".lines")).to_have_text("5 of 50 lines")
    router.publish("trial.log", "one more needle")
    expect(page.locator(".lines")).to_have_text("6 of 51 lines")


def test_levels_are_marked_by_sign_and_colour_and_can_be_filtered(router, visitor):
    for text in ("INFO started", "12:00 ERROR it broke", 'level=warn msg="hot"', "no level here"):
        router.publish("trial.log", text)
    router.publish("trial.log", "level in a field", level="error")
    page = visitor.log("trial.log")
    expect(page.get_by_text("level in a field")).to_be_visible()

    signs = page.evaluate("[...document.querySelectorAll('.row:not([hidden]) .sign')].map((sign) => sign.textContent)")
    page.get_by_label("Show errors").click()

    assert signs == ["I", "E", "W", "", "E"]
    expect(page.locator(".lines")).to_have_text("2 of 5 lines")
    assert visitor.texts() == ["12:00 ERROR it broke", "level in a field"]


def test_terminal_output_keeps_colours_and_no_other_sequence(router, visitor):
    router.publish("trial.log", "\x1b[1;32mgreen\x1b[0m and \x1b[38;2;1;2;3mexact\x1b[m\x1b]0;title\x07 end\x1b[2K")
    router.publish("trial.log", "10 %\r50 %\r100 %\n")
    page = visitor.log("trial.log")
    expect(page.get_by_text("100 %")).to_be_visible()

    assert visitor.texts() == ["green and exact end", "100 %"]
    assert page.get_by_text("green", exact=True).get_attribute("class") == "bold fg-green"
    assert page.get_by_text("exact", exact=True).evaluate("(span) => span.style.color") == "rgb(1, 2, 3)"


def test_markup_in_a_line_is_text(router, visitor):
    hostile = "<img src=x onerror=\"document.title='gone'\"><script>document.title='gone'</script>"
    router.publish("trial.log", hostile)
    page = visitor.log("trial.log")

    expect(page.locator(".row .text").last).to_have_text(hostile)
    assert page.title() == "trial.log · Signalbox"


def test_a_line_and_a_topic_lead_to_the_command_that_traces_a_message(router, visitor):
    for number in range(2):
        router.publish("trial.log", f"line {number}")
    page = visitor.log("trial.log")
    for _ in range(2):  # not a double click, which selects a word
        page.get_by_text("line 0").click()
    of_line = page.get_by_role("dialog").inner_text()
    page.keyboard.press("Escape")

    page.get_by_label("More").click()
    page.get_by_role("button", name="Newest line", exact=True).click()

    newest = page.get_by_role("dialog")
    expect(newest).to_contain_text("line 1")
    expect(newest.get_by_role("button", name="Copy trace command")).to_be_visible()
    commands = [re.search(r"signalbox trace (\d+)\n", text) for text in (of_line, newest.inner_text())]
    publications = [re.search(r"Publication\s+(\d+)", text) for text in (of_line, newest.inner_text())]
    assert [one and one[1] for one in commands] == [one and one[1] for one in publications]
    assert len({one and one[1] for one in commands}) == 2


def test_every_action_has_a_key(router, visitor):
    for number in range(100):
        router.publish("trial.log", f"line {number}", why="because")
    page = visitor.log("trial.log")
    expect(page.get_by_text("line 99")).to_be_visible()
    log, selected = page.get_by_role("listbox"), page.get_by_role("option", selected=True)
    log.focus()

    page.keyboard.press("Home")
    expect(selected).to_contain_text("line 0")
    page.keyboard.press("ArrowDown")
    expect(selected).to_contain_text("line 1")
    assert log.get_attribute("aria-activedescendant") == selected.get_attribute("id")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("line 1")
    dialog.get_by_text("Payload").click()
    expect(dialog).to_contain_text('"why": "because"')
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(log).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_label("Keep the newest line in view")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press(" ")
    expect(page.get_by_label("Hold new lines back")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("/")
    expect(page.get_by_label("Search in the log")).to_be_focused()


@pytest.mark.parametrize("width", [390, 1000])
def test_wrapped_lines_have_exactly_the_height_of_their_text(router, new_visitor, width):
    visitor = new_visitor(viewport={"width": width, "height": 800})
    for text in ("short", "x" * 300, "word " * 90, "日本語 and ✔ " * 30, "tab\there " * 20):
        router.publish("trial.log", text)
    page = visitor.log("trial.log")
    if width > 640:
        page.get_by_label("Wrap long lines").click()
    expect(page.locator(".row").first).to_be_visible()
    page.get_by_role("listbox").focus()
    page.keyboard.press("Home")

    gaps = page.evaluate(
        """() => {
            const rows = [...document.querySelectorAll(".row:not([hidden])")];
            rows.sort((one, other) => one.dataset.number - other.dataset.number);
            const places = rows.map((row) => row.getBoundingClientRect());
            return places.slice(1).map((place, index) => Math.round(place.top - places[index].bottom));
        }"""
    )

    assert gaps[0] == gaps[1] == gaps[2] == 0
    assert all(gap >= 0 for gap in gaps), "no line stands on another"


def test_lines_can_be_saved_as_a_file(router, visitor, tmp_path):
    router.publish("trial.log", "one")
    router.publish("trial.log", "two")
    page = visitor.log("trial.log")
    expect(page.get_by_text("two")).to_be_visible()

    page.get_by_label("More").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as file").click()
    download.value.save_as(tmp_path / "saved")

    lines = (tmp_path / "saved").read_text().splitlines()
    assert [line.partition(" ")[2] for line in lines] == ["one", "two"]
    assert re.fullmatch(r"trial\.log-\d{6}\.log", download.value.suggested_filename)


def test_the_oldest_lines_are_dropped_and_the_selected_line_stays_in_place(router, visitor):
    page = visitor.log("trial.log")

    def flood(first: int, last: int) -> None:
        for begin in range(first, last, 1_000):
            router.publish("trial.log", "\n".join(f"line {number} of it" for number in range(begin, begin + 1_000)))

    flood(0, 160_000)
    expect(page.locator(".lines")).to_have_text("160,000 lines")
    page.get_by_label("Search in the log").fill("line 100000 ")
    expect(page.locator(".found")).to_have_text("1 match")
    page.keyboard.press("Enter")
    selected = page.get_by_role("option", selected=True)
    expect(selected).to_contain_text("line 100000 of it")
    before = selected.bounding_box()

    flood(160_000, 166_000)

    expect(page.locator(".lines")).to_have_text("151,000 lines")
    expect(selected).to_contain_text("line 100000 of it")
    assert selected.bounding_box() == before
    page.get_by_role("listbox").focus()
    page.keyboard.press("Home")
    expect(selected).to_contain_text("line 15000 of it")
