"""The JavaScript client in a page without a build step, as its example uses it."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, expect

from tests.fakes import live_router
from tests.integration.live.wamp_clients import EXAMPLES, javascript

pytestmark = [pytest.mark.browser, pytest.mark.release]
CONTAINER = "trial.container.42"


class Quiet(SimpleHTTPRequestHandler):
    """Serves the files of a folder."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    """The address of the example's folder, with its dependencies."""
    folder = javascript(EXAMPLES / "javascript" / "package.json")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/example.html"
    server.shutdown()
    server.server_close()


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
