"""The accessibility of the page: axe's rules (WCAG 2.2 AA), keyboard, phones, light and dark."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.stages import furnish

pytestmark = pytest.mark.browser

TOPIC = "trial.records.zzzzz-dz642-0123456789abcde"
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
CONTAINER = "trial.container.zzzzz-j7d0g-0.zzzzz-dz642-0.log."
VIEWS = {"": "h1", "#/log/trial.log": ".row", f"#/record/{TOPIC}": "tr.changed", "#/overview": ".pictures img"}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
DESKTOP = {"viewport": {"width": 1280, "height": 800}}


def violations(page) -> list[str]:
    found = Axe().run(page, options=RULES).response["violations"]
    return [f"{one['id']}: {node['html'][:160]} {node['failureSummary']}" for one in found for node in one["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_view_meets_wcag_aa(router, new_visitor, scheme, size):
    furnish(router)
    for level in ("INFO", "WARN", "ERROR", "DEBUG"):
        router.publish(
            "trial.log",
            f"{level} \x1b[31mred\x1b[32mgreen\x1b[33myellow\x1b[34mblue\x1b[35mpink\x1b[36mcyan\x1b[37mgray\x1b[0m",
        )
        router.publish(
            "trial.log", f"{level} plain \x1b[41mon red\x1b[42mon green\x1b[44mon blue\x1b[0m and \x1b[7minverse\x1b[0m"
        )
    for state in ("Queued", "Running"):
        router.publish(TOPIC, {"state": state}, retain=True)
    visitor = new_visitor(color_scheme=scheme, reduced_motion="reduce", **size)
    visitor.page.goto(visitor.url)
    expect(visitor.page.get_by_label("Ticket")).to_be_visible()
    problems = violations(visitor.page)
    page = visitor.sign_in()
    page.get_by_role("banner").wait_for()
    for file in ("stderr", "stdout"):
        router.publish_message(
            f"{CONTAINER}{file}", '"2026-11-26T12:00:00.000000000Z text\\n"', {"begin": "0", "end": "36"}
        )
    for view, part in {**VIEWS, f"#/log/{CONTAINER}*": ".tools select"}.items():
        page.goto(f"{visitor.url}{view or '#/topics'}")
        page.locator(part).first.wait_for()
        problems += [f"{view}: {problem}" for problem in violations(page)]

    assert problems == []


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_wider_than_a_phone(router, new_visitor, view):
    furnish(router)
    router.publish("trial.log", "x" * 500)
    for state in ("Queued", "Running"):
        router.publish(TOPIC, {"state": state, "a_long_name_of_a_field": "y" * 200}, retain=True)
    visitor = new_visitor(**PHONE)
    page = visitor.sign_in(view)
    page.locator(VIEWS[view]).first.wait_for()

    width = page.evaluate("document.documentElement.scrollWidth")

    assert width <= PHONE["viewport"]["width"]


def test_the_page_is_usable_by_keyboard_alone(router, visitor):
    furnish(router)
    router.publish("trial.log", "a line")
    page = visitor.page
    page.goto(visitor.url)
    expect(page.get_by_label("Name")).to_be_focused()
    for text in ("alice", "a-ticket"):
        page.keyboard.type(text)
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Topics")).to_be_visible()
    expect(page.locator("main")).to_be_focused()

    page.get_by_role("link", name="Skip to content").focus()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    link = page.get_by_role("link", name="trial.log, log", exact=True)
    link.wait_for()
    for _ in range(5):
        page.keyboard.press("Tab")
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("a line")).to_be_visible()
    expect(page.locator("main")).to_be_focused()


def test_a_lost_connection_is_announced_to_screen_readers(router, visitor):
    page = visitor.log("trial.log")
    router.refuse_with = (503, "busy\n")
    router.cut()
    said = page.locator("[role=status].visually-hidden")
    expect(said.filter(has_text="The connection is lost. Reconnecting.")).to_have_count(1)

    router.refuse_with = None

    expect(said.filter(has_text="Connected again.")).to_have_count(1)


def test_new_lines_are_announced_only_after_read_aloud(router, visitor):
    page = visitor.log("trial.log")
    spoken = page.locator(".spoken")
    assert spoken.get_attribute("aria-live") == "off"

    page.get_by_label("More").click()
    page.get_by_label("Announce new lines to screen readers").click()
    for number in range(3):
        router.publish("trial.log", f"line {number}")

    expect(spoken).to_have_text("2 lines, then: line 2")
