"""The JavaScript client in a page without a build step, as its example uses it."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler

import pytest
from playwright.sync_api import Browser, expect

from tests.fakes import live_router
from tests.fakes.http_endpoint import serving
from tests.integration.live.wamp_clients import EXAMPLES, javascript

pytestmark = [pytest.mark.browser, pytest.mark.release]
CONTAINER = "trial.container.42"


@pytest.fixture
def address() -> Iterator[str]:
    """The address of the example's folder, with its dependencies."""
    folder = javascript(EXAMPLES / "javascript" / "package.json")
    with serving(partial(SimpleHTTPRequestHandler, directory=str(folder))) as url:
        yield f"{url}/example.html"


def test_the_page_shows_past_and_new_events(chromium: Browser, router: live_router.Router, address: str) -> None:
    page, problems = chromium.new_page(), list[str]()
    page.on("pageerror", lambda error: problems.append(str(error)))
    router.publish(f"{CONTAINER}.log.stdout", "from the past")

    page.goto(address)
    for label, value in {
        "URL": router.url,
        "Realm": live_router.REALM,
        "User": "alice",
        "Ticket": live_router.TICKET,
        "Container": CONTAINER,
    }.items():
        page.get_by_label(label).fill(value)
    page.get_by_role("button", name="Follow").click()

    expect(page.get_by_role("log")).to_contain_text("log: from the past")
    router.publish(f"{CONTAINER}.log.stdout", "new")
    expect(page.get_by_role("log")).to_contain_text("log: new")
    assert problems == []
