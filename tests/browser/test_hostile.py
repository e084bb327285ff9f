"""Hostile events, topics, names and pictures: no script runs, nothing is requested beyond the stage, the page works."""

import json
import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from signalbox.live.wamp.messages import Payload
from tests.browser.stages import ACTIVITY, AT, OVERVIEW, furnish
from tests.patience import wait_for

pytestmark = pytest.mark.browser

HARM = "window.harmed=1"
IMAGE = f'<img/src="https://evil.example/x"/onerror="{HARM}">'
TEXTS = [
    IMAGE,
    f"<script>{HARM}</script>",
    f'"><svg onload="{HARM}">',
    f"javascript:{HARM}",
    "https://evil.example/preview",
    f"\x1b]8;;javascript:{HARM}\x07link\x1b]8;;\x07 \x1b[31mred\x1b[999;999H\x1b]0;title\x07",
    "\u202eright to left\u202c \u0000\ud800 \ufffe \u2028",
    "z" + "\u0301" * 2_000,
    "x" * 20_000,
    "${7*7} {{7*7}} %s %n",
]
TOPICS = [
    f"trial.{IMAGE}",
    f"trial.<script>{HARM}</script>",
    f"trial.javascript:{HARM}",
    "trial.__proto__",
    "trial.constructor.prototype",
    "trial.%3Cscript%3E%00",
    "trial./%2E%2E/config%2Ejson?x=1&y=2",
    "trial.\u202eevil\U0001f600",
]
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 3" onload="parent.harmed=1">'
    "<script>parent.harmed=1</script>"
    '<image href="https://evil.example/y" width="4" height="3"/><style>@import "https://evil.example/z";</style></svg>'
)


def deep(levels: int) -> object:
    value: object = IMAGE
    for _ in range(levels):
        value = [value]
    return value


RECORD = {
    "__proto__": {"polluted": 1},
    "constructor": {"prototype": {"polluted": 1}},
    IMAGE: IMAGE,
    "toString": None,
    "deep": deep(80),
    "": TEXTS,
    "number": 1e308,
}


def hostile_stage(document: object) -> object:
    """Return a document of the stage whose names are markup."""
    text = json.dumps(document)
    for name in ("meme-app", "ann-x7", "trial.fifo", "webext"):
        text = text.replace(name, json.dumps(IMAGE)[1:-1])
    return json.loads(text)


@pytest.fixture
def requests(visitor) -> list[str]:
    """The addresses that the browser requests."""
    found: list[str] = []
    visitor.page.on("request", lambda request: found.append(request.url))
    visitor.page.on("dialog", lambda dialog: dialog.dismiss())
    return found


def check(page: Page, requests: list[str], *allowed: str) -> None:
    """Check that no script of a text has run, and that the browser has requested from the stage only."""
    assert page.evaluate("[window.harmed, ({}).polluted, document.title.includes('title')]") == [None, None, False]
    others = [url for url in requests if urlsplit(url).scheme != "blob" and urlsplit(url).netloc not in allowed]
    assert others == []


def test_hostile_data_stays_text(router, visitor, requests):
    furnish(router)
    router.procedures |= {
        "signalbox.overview": lambda _: Payload((hostile_stage(OVERVIEW),), {"unavailable": {IMAGE: IMAGE}}),
        "signalbox.activity": lambda _: Payload((hostile_stage(ACTIVITY),)),
        "signalbox.report": lambda payload: (
            Payload((SVG,)) if payload.arguments else Payload(([{"name": f"{IMAGE}/day=1.svg", "made_at": AT}],))
        ),
    }
    hosts = (urlsplit(visitor.url).netloc, urlsplit(router.url).netloc)
    for topic in TOPICS:
        for text in TEXTS:
            router.publish(topic, text)
        router.publish(topic, **{IMAGE: IMAGE, "__proto__": {"polluted": 1}})
        router.publish(f"{topic}.state", RECORD, retain=True)
        router.publish(f"{topic}.state", {**RECORD, "number": 2}, retain=True)

    page = visitor.sign_in()
    expect(page.locator(".topics li")).to_have_count(2 * len(TOPICS))
    links = page.locator(".topics a").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
    assert [link for link in links if not link.startswith("#/")] == []
    for link in links:
        page.goto(f"{visitor.url}{link}")
        shown = page.get_by_role("table") if "/record/" in link else page.get_by_role("listbox")
        expect(shown.first).to_contain_text(HARM)
    page.goto(f"{visitor.url}#/log/trial.*")
    expect(page.get_by_role("listbox")).to_contain_text("{{7*7}}")
    check(page, requests, *hosts)

    page.get_by_role("link", name="Overview", exact=True).click()
    expect(page.locator("main")).to_contain_text(HARM)
    is_drawn = "document.images[0]?.complete && document.images[0].naturalWidth > 0"
    wait_for(lambda: page.evaluate(is_drawn), "the picture")
    page.get_by_role("button", name="Enlarge").click()
    expect(page.get_by_role("dialog")).to_have_accessible_name(re.compile(re.escape(HARM)))
    check(page, requests, *hosts)
