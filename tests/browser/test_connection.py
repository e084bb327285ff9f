"""Sign-in, lost connections and ended sessions."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import new_visitors
from tests.browser.site import serving
from tests.browser.test_accessibility import PHONE
from tests.fakes import live_router

pytestmark = pytest.mark.browser

BROKEN_WORDS = """({firstChild: text}) => [...text.data.matchAll(/\\S+/g)].filter(({0: word, index}) => {
    const range = document.createRange();
    range.setStart(text, index);
    range.setEnd(text, index + word.length);
    return range.getClientRects().length > 1;
}).map(([word]) => word)"""


@pytest.mark.parametrize(
    ("name", "ticket", "reason"),
    [
        ("alice", "wrong", "Wrong name or ticket."),
        ("nobody", live_router.TICKET, "Wrong name or ticket."),
        ("", "", "Join with a name (authid), and by ticket or wampcra."),
    ],
)
def test_a_refused_sign_in_shows_the_reason_and_can_be_repeated(visitor, name, ticket, reason):
    page = visitor.sign_in(name=name, ticket=ticket)

    expect(page.get_by_role("alert")).to_have_text(reason)

    page.get_by_label("Name").fill("alice")
    page.get_by_label("Ticket").fill(live_router.TICKET)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Topics")).to_be_visible()


def test_an_unknown_realm_is_reported(visitor):
    visitor.page.goto(visitor.url)
    visitor.page.get_by_label("Realm").fill("elsewhere.fifo")
    visitor.page.get_by_label("Name").fill("alice")
    visitor.page.get_by_role("button", name="Sign in").click()

    expect(visitor.page.get_by_role("alert")).to_contain_text("here is no such realm")


def test_the_form_chooses_none_of_several_realms(chromium, router):
    realm = str(live_router.REALM)
    with serving(router.url, "another.fifo", realm) as url, new_visitors(chromium, url) as opened:
        page = opened().page
        page.goto(url)
        expect(page.get_by_label("Realm")).to_have_value("")

        page.get_by_label("Realm").fill(realm)
        page.get_by_label("Name").fill("alice")
        page.get_by_label("Ticket").fill(live_router.TICKET)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Topics")).to_be_visible()


def test_a_slow_first_answer_is_retried(router, visitor):
    router.refuse_with = (503, "busy\n")
    page = visitor.sign_in()
    expect(page.get_by_role("button", name="Sign in")).to_be_disabled()

    router.refuse_with = None

    expect(page.get_by_role("heading", name="Topics")).to_be_visible()


def test_a_server_that_does_not_answer_is_reported(router, visitor):
    router.refuse_with = (503, "busy\n")

    page = visitor.sign_in()

    expect(page.get_by_role("alert")).to_have_text("The server does not answer.")


def test_the_ticket_is_kept_in_memory_only(visitor):
    page = visitor.sign_in()
    expect(page.get_by_role("heading", name="Topics")).to_be_visible()

    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])")

    assert live_router.TICKET not in kept
    assert live_router.TICKET not in page.content()


def test_a_cut_connection_is_shown_and_no_event_is_lost_or_repeated(router, visitor):
    page = visitor.log("trial.*")
    wanted = []
    for cut in range(3):
        for number in range(20):
            wanted.append(f"{cut}.{number} seen")
            router.publish(f"trial.log.{number % 3}", wanted[-1])
        expect(page.get_by_text(wanted[-1])).to_be_visible()
        router.refuse_with = (503, "busy\n")
        router.cut()
        expect(page.locator(".connection")).to_contain_text("Reconnecting")
        for number in range(20):
            wanted.append(f"{cut}.{number} missed")
            router.publish(f"trial.log.{number % 3}", wanted[-1])
        router.refuse_with = None
        expect(page.locator(".connection")).to_have_text("Live")
        expect(page.locator(".lines")).to_have_text(f"{41 * (cut + 1)} lines")

    found = lines(page)
    notes = [line for line in found if line.startswith("Connection lost")]
    assert len(notes) == 3
    assert all(note.endswith("20 events fetched, nothing missing.") for note in notes), notes
    events = [line for line in found if line not in notes]
    assert sorted(events) == sorted(wanted)
    for topic in range(3):
        assert [line for line in events if topic_of(line) == topic] == [
            line for line in wanted if topic_of(line) == topic
        ]


def test_a_silent_connection_is_detected(router, visitor):
    visitor.page.clock.install()
    page = visitor.log("trial.log")
    router.publish("trial.log", "before")
    expect(page.get_by_text("before")).to_be_visible()

    with router.paused():
        page.clock.fast_forward("02:30")  # the page probes an idle connection
        page.clock.fast_forward("00:11")
        expect(page.locator(".connection")).to_contain_text("Reconnecting")

    page.clock.fast_forward("00:20")
    router.publish("trial.log", "after")
    expect(page.locator(".connection")).to_have_text("Live")
    expect(page.get_by_text("after")).to_be_visible()


def lines(page) -> list[str]:
    """Return all lines, collected by scrolling through the log as a reader does."""
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


def test_a_gap_in_the_history_is_noted_in_the_log(router, visitor):
    page = visitor.log("trial.log")
    router.publish("trial.log", "seen")
    expect(page.get_by_text("seen")).to_be_visible()
    router.refuse_with = (503, "busy\n")
    router.cut()
    for number in range(5):
        router.publish("trial.log", f"missed {number}")
    router.forget("trial.log", 4)
    router.refuse_with = None

    expect(
        page.get_by_text("Events 2 to 4 of trial.log are missing: no longer kept, or not visible to you.")
    ).to_be_visible()
    expect(page.locator(".row.note").last).to_contain_text("2 events fetched")
    expect(page.locator(".row.note").last).not_to_contain_text("nothing missing")


def test_a_revoked_permission_ends_the_log_and_keeps_its_lines(router, visitor):
    page = visitor.log("trial.log")
    router.publish("trial.log", "before")
    expect(page.get_by_text("before")).to_be_visible()

    router.revoke("alice")
    router.publish("trial.log", "after")

    expect(page.get_by_text("Ended: the permission was revoked.")).to_be_visible()
    assert visitor.texts() == ["before", "Ended: the permission was revoked."]


def test_a_refused_subscription_shows_the_reason_in_whole_words_on_a_phone(new_visitor):
    page = new_visitor(**PHONE).log("secret.log")

    reason = "this user may not subscribe to every topic that 'secret.log' matches; an administrator may add the right"
    shown = page.locator(".log-frame .empty")
    expect(shown).to_contain_text(f"Not available: {reason}")
    assert shown.evaluate(BROKEN_WORDS) == []


def test_a_killed_session_shows_the_reason_and_does_not_reconnect(router, visitor):
    page = visitor.log("trial.log")
    router.publish("trial.log", "still there")
    expect(page.get_by_text("still there")).to_be_visible()

    router.kill()

    expect(page.get_by_role("dialog", name="The session ended")).to_contain_text("enough")
    page.get_by_role("button", name="Stay").click()
    expect(page.locator(".connection")).to_have_text("Ended")
    expect(page.get_by_text("still there")).to_be_visible()


def test_tabs_are_open_again_after_signing_in_again(router, visitor):
    router.publish("trial.log", "a line")
    page = visitor.log("trial.log")
    page.goto("about:blank")

    visitor.sign_in()

    expect(page.get_by_role("navigation").get_by_role("link", name="trial.log")).to_be_visible()
    expect(page.get_by_text("a line")).to_be_visible()


def test_signing_out_leaves_no_data(visitor):
    page = visitor.log("trial.log")

    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    expect(page.get_by_label("Ticket")).to_have_value("")
