"""Records, topics, the overview and the pictures."""

import pytest
from playwright.sync_api import expect

from signalbox.live.wamp.messages import Payload
from tests.browser.stages import ACTIVITY, AT, OVERVIEW, furnish
from tests.patience import wait_for

pytestmark = pytest.mark.browser

TOPIC = "trial.records.zzzzz-dz642-0123456789abcde"


def record(visitor):
    page = visitor.sign_in(f"#/record/{TOPIC}")
    page.get_by_role("table").wait_for()
    return page


def test_a_record_shows_its_latest_state_and_what_changed_last(router, visitor):
    state = {"state": "Queued", "priority": 5, "status": {"activity": "waiting", "warning": "hot"}}
    router.publish(TOPIC, state, retain=True)
    router.publish(TOPIC, {"state": "Running", "priority": 5, "status": {"activity": "aligning"}}, retain=True)
    page = record(visitor)

    changed = page.locator("tr.changed")
    expect(changed).to_have_count(3)
    assert changed.all_inner_texts() == [
        "state\tQueued Running\tjust now",
        "status.activity\twaiting aligning\tjust now",
        "status.warning\thot\tremoved",
    ]
    expect(page.get_by_role("row", name="priority 5")).not_to_have_class("changed")


def test_a_change_is_highlighted_and_announced(router, visitor):
    router.publish(TOPIC, {"state": "Queued"}, retain=True)
    page = record(visitor)
    expect(page.get_by_role("cell", name="Queued")).to_be_visible()

    router.publish(TOPIC, {"state": "Complete", "exit_code": 0}, retain=True)

    row = page.get_by_role("row", name="state")
    expect(row).to_contain_text("Complete")
    expect(row.locator("del")).to_have_text("Queued")
    expect(page.get_by_role("status").filter(has_text="state: Complete, exit_code: 0")).to_have_count(1)


def test_an_earlier_state_can_be_chosen(router, visitor):
    for state in ("Queued", "Locked", "Running"):
        router.publish(TOPIC, {"state": state}, retain=True)
    page = record(visitor)
    states = page.get_by_role("complementary", name="States").get_by_role("button")
    expect(states).to_have_count(3)

    states.nth(1).click()

    expect(page.get_by_text("Earlier state, number 2")).to_be_visible()
    expect(page.get_by_role("row", name="state")).to_contain_text("Queued Locked")
    page.get_by_role("button", name="Back to the latest state").click()
    expect(page.get_by_text("Latest state, number 3")).to_be_visible()


def test_a_record_has_each_state_once_after_a_reconnect(router, visitor):
    router.publish(TOPIC, {"state": "Queued"}, retain=True)
    page = record(visitor)
    states = page.get_by_role("complementary", name="States").get_by_role("button")
    expect(states).to_have_count(1)
    router.refuse_with = (503, "busy\n")
    router.cut()
    expect(page.locator(".connection")).to_contain_text("Reconnecting")

    router.publish(TOPIC, {"state": "Locked"}, retain=True)
    router.publish(TOPIC, {"state": "Running"}, retain=True)
    router.refuse_with = None

    expect(states).to_have_count(3)
    expect(page.get_by_role("row", name="state")).to_contain_text("Locked Running")


def test_topics_are_listed_with_links_to_log_or_record(router, visitor):
    furnish(router)
    router.publish("trial.logs.stdout", "a line")
    router.publish(TOPIC, {"state": "Queued"}, retain=True)
    page = visitor.sign_in()

    expect(page.locator(".topics li")).to_have_count(2)
    page.get_by_role("link", name=f"{TOPIC}, record").click()
    expect(page.get_by_role("cell", name="Queued")).to_be_visible()
    page.get_by_role("link", name="Topics", exact=True).click()
    page.get_by_role("link", name="trial.logs.stdout, log", exact=True).click()
    expect(page.get_by_text("a line")).to_be_visible()


def test_a_pattern_opens_as_a_log_that_names_the_topic_of_each_line(router, visitor):
    furnish(router)
    router.publish("trial.logs.stdout", "out")
    router.publish("trial.logs.stderr", "err")
    page = visitor.sign_in()

    page.get_by_label("Topic", exact=True).fill("trial.logs.")
    page.get_by_label("Match").select_option("prefix")
    page.get_by_role("button", name="Open as log").click()

    expect(page.get_by_text("stderr err")).to_be_visible()
    assert visitor.texts() == ["stdout out", "stderr err"]


def test_a_record_is_a_single_topic(router, visitor):
    furnish(router)
    router.publish(f"{TOPIC}.one", {"state": "Queued"}, retain=True)
    page = visitor.sign_in()
    page.get_by_label("Topic", exact=True).fill(TOPIC)
    page.get_by_label("Match").select_option("prefix")
    page.get_by_role("button", name="Open as record").click()
    expect(page.get_by_text("A record is a single topic. Open a pattern as a log.")).to_be_visible()

    page.goto(f"{visitor.url}#/record/{TOPIC}*")

    expect(page.locator(".row")).to_contain_text('.one {"state":"Queued"}')


def test_events_of_a_hidden_log_are_counted(router, visitor):
    page = visitor.log("trial.log")
    page.get_by_role("link", name="Overview").click()

    for number in range(4):
        router.publish("trial.log", f"line {number}")

    expect(page.get_by_label("4 new events")).to_be_visible()
    page.get_by_role("link", name="trial.log").click()
    expect(page.get_by_text("line 3")).to_be_visible()
    expect(page.get_by_label("4 new events")).to_have_count(0)


def test_the_overview_shows_the_state_of_the_stage(router, visitor):
    furnish(router)
    page = visitor.sign_in("#/overview")

    def card(name: str):
        return page.get_by_role("region", name=name)

    expect(card("Connections")).to_contain_text("2sessions")
    expect(card("Connections").get_by_role("row", name="crunch")).to_be_visible()
    expect(card("Rendezvous today")).to_contain_text("≤ 512clients matched")
    expect(card("Splits").get_by_role("row", name="ann-x7")).to_contain_text("ready")
    expect(card("Splits")).to_contain_text("record of a split of version 9")
    expect(card("Exchanges").get_by_role("row", name="trial.fifo")).to_contain_text("12,044")


def test_the_overview_shows_the_activity_of_each_capability(router, visitor):
    furnish(router)
    page = visitor.sign_in("#/overview")
    now = page.get_by_role("region", name="Now")
    exchange = now.get_by_role("listitem").filter(has_text="exchange")

    expect(now.get_by_role("listitem")).to_have_count(5)
    for number in ("1,240", "12,044", "12 min", "7 errors", "0.4123"):
        expect(exchange.get_by_role("button", name=number)).to_be_visible()
    expect(exchange.get_by_role("img", name="messages of each minute of the last hour, at most 63000")).to_be_visible()
    expect(now.get_by_role("listitem").filter(has_text="splitting")).to_contain_text("< 0.0001")


def test_a_number_shows_its_command_which_stays_over_a_refresh(router, visitor):
    furnish(router)
    page = visitor.sign_in("#/overview")
    exchange = page.get_by_role("listitem").filter(has_text="exchange").filter(has_text="12,044")
    button = exchange.get_by_role("button", name="errors")

    button.click()
    expect(exchange.get_by_role("status")).to_contain_text('signalbox history query "SELECT reason')
    expect(button).to_have_attribute("aria-expanded", "true")
    changed = {**ACTIVITY["capabilities"][2], "errors": 9}  # type: ignore[index]  # a list of mappings
    router.procedures["signalbox.activity"] = lambda _: Payload(({"at": AT, "capabilities": [changed]},))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(exchange.get_by_role("button", name="9 errors")).to_be_focused()
    expect(exchange.get_by_role("status")).to_contain_text("signalbox history query")
    button.click()
    expect(exchange.get_by_role("status")).to_be_hidden()


def test_who_is_no_administrator_sees_neither_splits_nor_activity(router, visitor):
    furnish(router)
    router.roles = {}
    page = visitor.sign_in("#/overview")

    expect(page.get_by_role("region", name="Splits")).to_contain_text("You have no permission to view this.")
    expect(page.get_by_role("region", name="Now")).to_be_hidden()


def test_an_unavailable_part_does_not_hide_the_others(router, visitor):
    furnish(router)
    parts = {name: part for name, part in OVERVIEW.items() if name != "splits"}
    router.procedures["signalbox.overview"] = lambda _: Payload(
        (parts,), {"unavailable": {"splits": "AWS answered Throttling"}}
    )
    page = visitor.sign_in("#/overview")

    expect(page.get_by_role("region", name="Splits")).to_contain_text("Not available: AWS answered Throttling.")
    expect(page.get_by_role("region", name="Exchanges")).to_contain_text("12,044")


def test_a_user_without_a_grant_is_informed(router, visitor):
    router.rights["alice"] = router.rights["alice"][:2]
    page = visitor.sign_in("#/overview")

    expect(page.get_by_role("region", name="Splits")).to_contain_text("You have no permission to view this.")


def test_the_pictures_of_reports_are_shown_and_enlarged(router, visitor):
    furnish(router)
    page = visitor.sign_in("#/overview")

    picture = page.get_by_role("img", name="rendezvous, 2026-11-21")
    expect(picture).to_be_visible()
    are_loaded = "[...document.images].every((image) => image.complete && image.naturalWidth > 0)"
    wait_for(lambda: page.evaluate(are_loaded), "the pictures")
    page.get_by_role("button", name="Enlarge rendezvous").click()
    expect(page.get_by_role("dialog", name="rendezvous")).to_be_visible()
