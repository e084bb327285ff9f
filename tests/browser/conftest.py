"""A headless browser that shows the page, connected to a router in memory."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from signalbox.local import tools
from tests.browser.site import serving
from tests.fakes import live_router
from tests.tiers import chromium as local_chromium

ALL = live_router.grants("trial.", "signalbox.", "wamp.session.", "wamp.subscription.")
# Browsers report connections that tests cut; the page reports them itself.
EXPECTED = re.compile("WebSocket connection to .* failed")

VISIBLE_SECONDS = 240


@pytest.fixture(autouse=True)
def patience() -> None:
    """Wait for what the page shows as long as the machine needs: its cores may be busy with other tests."""
    expect.set_options(timeout=VISIBLE_SECONDS * 1000)


# Not for the whole run: Playwright has an event loop in this thread, and other tests may need their own.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    found = local_chromium.chromium()
    with pytest.MonkeyPatch.context() as patch:
        # Playwright's own Node needs a library, libatomic, that Debian does not always have.
        patch.setenv("PLAYWRIGHT_NODEJS_PATH", str(tools.node()))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=found.program, args=list(found.arguments), env={**os.environ, **found.variables}
            )
            yield browser
            browser.close()


@pytest.fixture
def router() -> Iterator[live_router.Router]:
    with live_router.running({"alice": ALL}) as running:
        yield running


@dataclass(slots=True)
class Visitor:
    """A visitor of the page; `problems` are the errors and warnings that the browser reported."""

    page: Page
    url: str
    problems: list[str]

    def sign_in(self, address: str = "", *, name: str = "alice", ticket: str = live_router.TICKET) -> Page:
        self.page.goto(f"{self.url}{address}")
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_label("Ticket").fill(ticket)
        self.page.get_by_role("button", name="Sign in").click()
        return self.page

    def log(self, topic: str) -> Page:
        self.sign_in(f"#/log/{topic}")
        self.page.get_by_role("listbox").wait_for()
        return self.page

    def texts(self) -> list[str]:
        """Return the texts of the rows in the document, from the top."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll(".row:not([hidden])")]
                .map((row) => row.querySelector(".text").textContent)"""
        )


@contextmanager
def new_visitors(chromium: Browser, url: str) -> Iterator[Callable[..., Visitor]]:
    """Open the page with options of a Playwright context, and fail at the end if a browser has reported a problem."""
    visitors: list[Visitor] = []

    def opened(**options: object) -> Visitor:
        context = chromium.new_context(**options)  # type: ignore[arg-type]
        visitor = Visitor(context.new_page(), url, [])
        visitor.page.on("pageerror", lambda error: visitor.problems.append(str(error)))
        visitor.page.on("console", lambda message: _note(visitor, message))
        visitors.append(visitor)
        return visitor

    yield opened
    for visitor in visitors:
        visitor.page.context.close()
    assert [problem for visitor in visitors for problem in visitor.problems] == []


@pytest.fixture
def new_visitor(chromium: Browser, router: live_router.Router) -> Iterator[Callable[..., Visitor]]:
    """Open the page for the router in memory."""
    with serving(router.url, str(live_router.REALM)) as url, new_visitors(chromium, url) as opened:
        yield opened


def _note(visitor: Visitor, message: ConsoleMessage) -> None:
    """Note a problem of the page itself, and not of an identity provider's pages and resources."""
    is_own = urlsplit(message.location["url"]).netloc in ("", urlsplit(visitor.url).netloc)
    if is_own and message.type in ("error", "warning") and not EXPECTED.search(message.text):
        visitor.problems.append(message.text)


@pytest.fixture
def visitor(new_visitor: Callable[..., Visitor]) -> Visitor:
    return new_visitor(viewport={"width": 1280, "height": 800})
