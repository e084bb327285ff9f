"""The page of the deployed stage, with the events that the stage publishes."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urljoin
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from signalbox.clients.deployment import Deployment
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.session import ConnectionLost
from signalbox.exchange.model.records import OrderBy
from signalbox.live.wamp.messages import Payload
from tests.browser.conftest import EXPECTED
from tests.browser.stages import SVG
from tests.integration.live.arvados_realm import REALM, arvados_realm, row, settle
from tests.integration.live.stage import TrialRealm, new_topic
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.browser]

STAGE_SECONDS = 240  # emulated functions start slowly
ATTEMPTS = 5


@pytest.fixture(autouse=True)
def patience() -> None:
    expect.set_options(timeout=STAGE_SECONDS * 1000)


@pytest.fixture(scope="module")
def place(deployed: dict[str, Any]) -> TrialRealm:
    return TrialRealm.of(deployed)


@pytest.fixture(scope="module")
def publisher(place: TrialRealm) -> Iterator[LiveClient]:
    with place.publisher() as client:
        for _ in range(ATTEMPTS):
            with suppress(ConnectionLost):
                client.publish(new_topic(), Payload(("awake",)))
                break
        yield client


@pytest.fixture
def joined(chromium: Browser, deployed: dict[str, Any], place: TrialRealm) -> Iterator[Callable[..., Page]]:
    """Sign in as the user of a role, and fail at the end if the browser has reported a problem."""
    pages: list[Page] = []
    problems: list[str] = []

    def join(role: str, address: str, *, websocket_url: str | None = None) -> Page:
        # The page's policy knows one server, and not the proxy that a test puts in front of it.
        page = chromium.new_context(bypass_csp=websocket_url is not None).new_page()
        page.set_default_timeout(STAGE_SECONDS * 1000)
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        pages.append(page)
        if websocket_url:
            config = json.dumps({"websocket_url": websocket_url, "realms": [place.realm]})
            page.route("**/config.json", lambda route: route.fulfill(body=config, content_type="application/json"))
        page.goto(f"{deployed['page_url']}{address}")
        name, ticket = place.users[role]
        page.get_by_label("Realm").fill(place.realm)
        page.get_by_label("Name").fill(name)
        page.get_by_label("Ticket").fill(ticket)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("banner").wait_for()
        return page

    yield join
    for page in pages:
        page.context.close()
    assert [problem for problem in problems if not EXPECTED.search(problem)] == []


def publish(client: LiveClient, topic: str, *values: object, **options: object) -> None:
    for value in values:
        client.publish(topic, Payload((value,)), options=options)


def test_the_page_is_served_with_its_policy_and_lists_the_realm(deployed):
    with urlopen(deployed["page_url"]) as answer:  # noqa: S310 - the stage's own address
        policy, etag = answer.headers["Content-Security-Policy"], answer.headers["ETag"]
        assert b"<!doctype html>" in answer.read()

    def config() -> Any:
        with urlopen(f"{deployed['page_url']}config.json") as answer:  # noqa: S310
            return json.load(answer)

    assert "default-src 'none'" in policy
    assert etag
    assert urljoin(deployed["websocket_url"], config()["websocket_url"]) == deployed["websocket_url"]
    wait_for(lambda: deployed["realm"] in config()["realms"], "the realm among those of the page")


def test_a_log_begins_with_its_history_and_continues_live(joined, publisher):
    topic = new_topic()
    publish(publisher, topic, "before 1", "before 2")
    page = joined("subscriber", f"#/log/{topic}")
    expect(page.get_by_text("before 2")).to_be_visible()

    publish(publisher, topic, "after")

    expect(page.get_by_text("after")).to_be_visible()
    assert page.locator(".row:not([hidden]) .text").all_text_contents() == ["before 1", "before 2", "after"]


def test_an_administrator_sees_the_stage_and_the_pictures_of_jobs(joined, publisher, deployed, deployment):
    picture = {"Bucket": deployed["history_bucket"], "Key": "reports/trial_report/picture/day=2026-11-21.svg"}
    deployment.session().client("s3").put_object(**picture, Body=SVG.encode())
    publish(publisher, new_topic(), {"state": "Queued"}, retain=True)
    page = joined("admin", "#/overview")

    cards = {"Connections": "live-admin", "Exchanges": "trial.fifo", "Rendezvous today": "proxies", "Now": "posts/s"}
    for card, text in cards.items():
        expect(page.get_by_role("region", name=card)).to_contain_text(text)
    expect(page.get_by_role("img", name="trial report, 2026-11-21")).to_be_visible()
    page.get_by_role("link", name="Topics").click()
    expect(page.locator(".topics li")).not_to_have_count(0)


def test_the_stage_reports_that_it_is_healthy(deployed):
    health = Request(f"{deployed['page_url'].removesuffix('/')}/health")  # noqa: S310

    with urlopen(health) as answer:  # noqa: S310
        assert json.load(answer) == {"health": "OK"}


# What Workbench's service of WebSocket messages does: it names no subprotocol and no filters.
WORKBENCH = """(url) => {
    window.received = [];
    const socket = new WebSocket(url);
    socket.addEventListener("open", () => socket.send('{"method":"subscribe"}'));
    socket.addEventListener("message", (message) => window.received.push(JSON.parse(message.data)));
}"""


def test_a_browser_gets_the_rows_that_its_user_may_read_by_workbench_s_requests(
    chromium: Browser, deployed: dict[str, Any], deployment: Deployment, place: TrialRealm
):
    name, secret = place.users["subscriber"]
    grant = {"user": name, "exchange": REALM, "right": "read", "match": "prefix", "uri": "record."}
    with arvados_realm(deployment) as administrator:
        administrator.ask("grant", grant)
        settle(administrator)
        page = chromium.new_context(bypass_csp=True).new_page()
        page.set_default_timeout(STAGE_SECONDS * 1000)
        page.goto(deployed["page_url"])
        page.evaluate(WORKBENCH, f"{place.url}?api_token=v2/{name}/{secret}")
        page.wait_for_function("window.received.length === 1")

        for number, topic in ((31, "record.a"), (32, "secret.a"), (33, "record.b")):
            administrator.publish(REALM, topic, json.dumps(row(number)), order_by=OrderBy.EXCHANGE)

        page.wait_for_function("window.received.length === 3")
        assert page.evaluate("window.received") == [
            {"status": 200},
            {"msgID": 1, **row(31)},
            {"msgID": 2, **row(33)},
        ]
        page.context.close()
