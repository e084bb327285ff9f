"""A real browser without a window, a router in memory, and the page between them."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.site import serving
from tests.fakes import live_router

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ALL = live_router.grants("trial.", "signalbox.", "wamp.session.", "wamp.subscription.")
# What browsers say of connections that tests cut, and that the page speaks of itself.
EXPECTED = re.compile("WebSocket connection to .* failed")

# Two cores may be busy with other tests.
expect.set_options(timeout=20_000)


# Not for the whole run: Playwright has an event loop in this thread, and other tests may want one of their own.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    program = os.environ.get("SIGNALBOX_CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium on this machine: install one (Debian: chromium), or name one in SIGNALBOX_CHROMIUM")
    # Root, as in containers, has no sandbox; what is opened is our own page.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def router() -> Iterator[live_router.Router]:
    with live_router.running({"alice": ALL}) as running:
        yield running


@dataclass(slots=True)
class Desk:
    """Somebody in front of the page; `problems` is what the browser complained of."""

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
                .sort((one, other) => one.dataset.number - other.dataset.number)
                .map((row) => row.querySelector(".text").textContent)"""
        )


@pytest.fixture
def open_desk(chromium: Browser, router: live_router.Router) -> Iterator[Callable[..., Desk]]:
    """Open the page with options of Playwright's contexts; afterwards, no browser may have complained."""
    desks: list[Desk] = []

    def opened(**options: object) -> Desk:
        context = chromium.new_context(**options)  # type: ignore[arg-type]
        desk = Desk(context.new_page(), url, [])
        desk.page.on("pageerror", lambda error: desk.problems.append(str(error)))
        desk.page.on("console", lambda message: _note(desk, message))
        desks.append(desk)
        return desk

    with serving(router.url, str(live_router.REALM)) as url:
        yield opened
        for desk in desks:
            desk.page.context.close()
    assert [problem for desk in desks for problem in desk.problems] == []


def _note(desk: Desk, message: ConsoleMessage) -> None:
    if message.type in ("error", "warning") and not EXPECTED.search(message.text):
        desk.problems.append(message.text)


@pytest.fixture
def desk(open_desk: Callable[..., Desk]) -> Desk:
    return open_desk(viewport={"width": 1280, "height": 800})
