"""Signing in, and what the page makes of connections that end."""

import pytest
from playwright.sync_api import expect

from tests.fakes import live_router

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("name", "ticket", "reason"),
    [
        ("alice", "wrong", "Wrong authid or secret."),
        ("nobody", live_router.TICKET, "Wrong authid or secret."),
        ("", "", "Join with an authid, and by ticket or wampcra."),
    ],
)
def test_who_may_not_join_is_told_why_and_can_try_again(desk, name, ticket, reason):
    page = desk.sign_in(name=name, ticket=ticket)

    expect(page.get_by_role("alert")).to_have_text(reason)

    page.get_by_label("Name").fill("alice")
    page.get_by_label("Ticket").fill(live_router.TICKET)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Topics")).to_be_visible()


def test_a_realm_that_is_not_there_is_told(desk):
    desk.page.goto(desk.url)
    desk.page.get_by_label("Realm").fill("elsewhere.fifo")
    desk.page.get_by_label("Name").fill("alice")
    desk.page.get_by_role("button", name="Sign in").click()

    expect(desk.page.get_by_role("alert")).to_contain_text("here is no such realm")


def test_a_server_that_has_just_been_woken_gets_another_try(router, desk):
    router.refuse_with = (503, "busy\n")
    page = desk.sign_in()
    expect(page.get_by_role("button", name="Sign in")).to_be_disabled()

    router.refuse_with = None

    expect(page.get_by_role("heading", name="Topics")).to_be_visible()


def test_a_server_that_does_not_answer_is_told(router, desk):
    router.refuse_with = (503, "busy\n")

    page = desk.sign_in()

    expect(page.get_by_role("alert")).to_have_text("The server does not answer.")


def test_the_ticket_is_nowhere_but_in_memory(desk):
    page = desk.sign_in()
    expect(page.get_by_role("heading", name="Topics")).to_be_visible()

    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])")

    assert live_router.TICKET not in kept
    assert live_router.TICKET not in page.content()


def test_a_cut_connection_is_seen_and_nothing_is_lost_or_told_twice(router, desk):
    page = desk.log("trial.*")
    wanted = []
    for cut in range(3):
        for number in range(20):
            wanted.append(f"{cut}.{number} seen")
            router.publish(f"trial.log.{number % 3}", wanted[-1])
        expect(page.get_by_text(wanted[-1])).to_be_visible()
        router.refuse_with = (503, "busy\n")
        router.cut()
        expect(page.locator(".lamp")).to_contain_text("Reconnecting")
        for number in range(20):
            wanted.append(f"{cut}.{number} missed")
            router.publish(f"trial.log.{number % 3}", wanted[-1])
        router.refuse_with = None
        expect(page.locator(".lamp")).to_have_text("Live")
        expect(page.locator(".lines")).to_have_text(f"{41 * (cut + 1)} lines")

    found = lines(page)
    notes = [line for line in found if line.startswith("Connection lost")]
    assert len(notes) == 3
    assert all(note.endswith("20 events fetched, nothing missing.") for note in notes), notes
    told = [line for line in found if line not in notes]
    assert sorted(told) == sorted(wanted)
    for topic in range(3):
        assert [line for line in told if topic_of(line) == topic] == [
            line for line in wanted if topic_of(line) == topic
        ]


def test_a_connection_that_has_fallen_silent_is_found_out(router, desk):
    desk.page.clock.install()
    page = desk.log("trial.log")
    router.publish("trial.log", "before")
    expect(page.get_by_text("before")).to_be_visible()

    with router.paused():
        page.clock.fast_forward("02:30")  # the page looks whether it is still heard
        page.clock.fast_forward("00:11")
        expect(page.locator(".lamp")).to_contain_text("Reconnecting")

    page.clock.fast_forward("00:20")
    router.publish("trial.log", "after")
    expect(page.locator(".lamp")).to_have_text("Live")
    expect(page.get_by_text("after")).to_be_visible()


def lines(page) -> list[str]:
    """Return all lines, seen by scrolling through the log as a reader does."""
    return page.evaluate(
        """async () => {
            const log = document.querySelector(".log");
            const found = new Map();
            for (let top = 0; top <= log.scrollHeight; top += log.clientHeight / 2) {
                log.scrollTop = top;
                await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
                for (const row of document.querySelectorAll(".row:not([hidden])")) {
                    const from = row.querySelector(".from")?.textContent.length ?? 0;
                    found.set(Number(row.dataset.number), row.querySelector(".text").textContent.slice(from));
                }
            }
            return [...found].sort(([one], [other]) => one - other).map(([, text]) => text);
        }"""
    )


def topic_of(line: str) -> int:
    return int(line.partition(".")[2].partition(" ")[0]) % 3


def test_what_the_log_does_not_have_any_more_is_not_passed_over_in_silence(router, desk):
    page = desk.log("trial.log")
    router.publish("trial.log", "seen")
    expect(page.get_by_text("seen")).to_be_visible()
    router.refuse_with = (503, "busy\n")
    router.cut()
    for number in range(5):
        router.publish("trial.log", f"missed {number}")
    router.forget("trial.log", 4)
    router.refuse_with = None

    expect(page.get_by_text("Numbers 2 to 4 of trial.log are not kept any more, or not for you.")).to_be_visible()
    expect(page.locator(".row.note").last).to_contain_text("2 events fetched")
    expect(page.locator(".row.note").last).not_to_contain_text("nothing missing")


def test_a_permission_that_is_taken_away_ends_the_log_visibly_and_keeps_what_was_shown(router, desk):
    page = desk.log("trial.log")
    router.publish("trial.log", "before")
    expect(page.get_by_text("before")).to_be_visible()

    router.revoke("alice")
    router.publish("trial.log", "after")

    expect(page.get_by_text("Ended: the permission was taken away.")).to_be_visible()
    assert desk.texts() == ["before", "Ended: the permission was taken away."]


def test_a_topic_that_is_not_open_says_so(desk):
    page = desk.log("secret.log")

    expect(page.locator(".log-frame .empty, .row.note")).to_contain_text(["may not subscribe"])


def test_a_session_that_was_ended_says_why_and_does_not_come_back_by_itself(router, desk):
    page = desk.log("trial.log")
    router.publish("trial.log", "still there")
    expect(page.get_by_text("still there")).to_be_visible()

    router.kill()

    expect(page.get_by_role("dialog", name="The session ended")).to_contain_text("enough")
    page.get_by_role("button", name="Stay").click()
    expect(page.locator(".lamp")).to_have_text("Ended")
    expect(page.get_by_text("still there")).to_be_visible()


def test_what_was_open_is_open_again_after_signing_in_anew(router, desk):
    router.publish("trial.log", "a line")
    page = desk.log("trial.log")
    page.goto("about:blank")

    desk.sign_in()

    expect(page.get_by_role("navigation").get_by_role("link", name="trial.log")).to_be_visible()
    expect(page.get_by_text("a line")).to_be_visible()


def test_who_signs_out_leaves_nothing_behind(desk):
    page = desk.log("trial.log")

    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    expect(page.get_by_label("Ticket")).to_have_value("")
