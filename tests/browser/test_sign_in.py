"""Sign-in on the page with a real OpenID provider, renewal on the open session, and sign-out."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from signalbox.aws.live.issuers import IssuerKeys
from signalbox.aws.live.json_documents import JsonDocuments
from signalbox.aws.live.tokens import JwtVerifier
from signalbox.exchange.model.issuers import Issuer
from tests.browser.conftest import Visitor, new_visitors
from tests.browser.site import serving
from tests.browser.test_accessibility import violations
from tests.fakes import live_router
from tests.identity.provider import CLIENT, LIFETIME_SECONDS, SILENT_CLIENT, IdentityProvider
from tests.patience import wait_for

pytestmark = pytest.mark.browser

TOPIC = "trial.log"
SHORT_SECONDS = 6  # renewed after four; the issuer's skew of a minute keeps a busy machine from being late


@pytest.fixture
def issuer(identity_provider: IdentityProvider) -> Issuer:
    return Issuer(
        identity_provider.url,
        identity_provider.audience,
        label="lab",
        role_claim="role",
        client_id=CLIENT,
    )


@pytest.fixture
def router(issuer: Issuer) -> Iterator[live_router.Router]:
    with live_router.running({}) as running:
        running.issuers, running.tokens = (issuer,), JwtVerifier(IssuerKeys(JsonDocuments(allows_loopback=True)))
        running.group_rights["imaging"] = live_router.grants("trial.")
        running.group_rights["lab"] = live_router.grants("signalbox.", "other.")
        yield running


@pytest.fixture
def site(router: live_router.Router, identity_provider: IdentityProvider) -> Iterator[str]:
    """The page's address, which the provider knows; tokens have their usual lifetime again at the end."""
    with serving(router.url, str(live_router.REALM), issuers=router.issuers) as url:
        for file in ("", "renewed.html"):
            identity_provider.add_page(f"{url}{file}")
        yield url
    identity_provider.set_lifetime(LIFETIME_SECONDS)


@pytest.fixture
def new_visitor(chromium: Browser, site: str) -> Iterator[Callable[..., Visitor]]:
    with new_visitors(chromium, site) as opened:
        yield opened


@pytest.fixture
def user(identity_provider: IdentityProvider, request: pytest.FixtureRequest) -> str:
    """A user of the provider who may read the logs, for one test."""
    name = re.sub(r"\W", "-", request.node.name)[-40:]
    identity_provider.set_user(name, groups=["imaging", "lab"], role="subscriber")
    return name


def sign_in(visitor: Visitor, user: str, address: str = f"#/log/{TOPIC}") -> Page:
    """Sign in at the provider's forms, and return to the page."""
    page = visitor.page
    page.goto(f"{visitor.url}{address}")
    pass_forms(page, user)
    page.get_by_role("banner").wait_for()
    return page


def pass_forms(page: Page, user: str) -> None:
    page.get_by_role("button", name="Sign in with lab").click()
    page.get_by_placeholder("Enter any login").fill(user)
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def wait_for_renewal(router: live_router.Router) -> None:
    first = router.token_ends()
    assert first is not None
    wait_for(lambda: (router.token_ends() or first) > first, "the renewal", seconds=4 * SHORT_SECONDS)


def stored(page: Page) -> str:
    return str(
        page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])")
    )


def test_a_user_of_the_provider_sees_what_the_groups_may_see(visitor, router, user):
    router.publish(TOPIC, "for the group")

    page = sign_in(visitor, user)

    expect(page.get_by_text("for the group")).to_be_visible()
    expect(page.get_by_role("banner")).to_contain_text(f"{user}@lab")
    assert page.url == f"{visitor.url}#/log/{TOPIC}"


def test_no_token_and_no_code_is_in_the_address_or_in_a_store(visitor, user):
    sent: list[str] = []
    visitor.page.on("request", lambda request: sent.append(request.url))

    page = sign_in(visitor, user)

    kept = stored(page)
    assert "eyJ" not in kept  # how every JWT begins
    assert "code=" not in kept
    assert "signalbox.sign-in" not in kept
    assert not [url for url in sent if "eyJ" in url or "verifier" in url]
    (asked,) = [parse_qs(urlsplit(url).query) for url in sent if "/auth?" in url]
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["response_type"] == ["code"]
    assert asked["state"] != asked["nonce"]


def test_a_token_is_renewed_on_the_open_session(visitor, router, identity_provider, user):
    identity_provider.set_lifetime(SHORT_SECONDS)
    page = sign_in(visitor, user)

    wait_for_renewal(router)
    router.end_tokens()
    router.publish(TOPIC, "after the renewal")

    expect(page.get_by_text("after the renewal")).to_be_visible()
    assert router.joins == 1


def test_a_provider_without_refresh_tokens_renews_in_a_hidden_frame(chromium, router, identity_provider, issuer, user):
    router.issuers = (replace(issuer, client_id=SILENT_CLIENT),)
    identity_provider.set_lifetime(SHORT_SECONDS)
    with serving(router.url, str(live_router.REALM), issuers=router.issuers) as url:
        for file in ("", "renewed.html"):
            identity_provider.add_page(f"{url}{file}")
        with new_visitors(chromium, url) as opened:
            page = sign_in(opened(), user)

            wait_for_renewal(router)
            router.publish(TOPIC, "after the renewal")

            expect(page.get_by_text("after the renewal")).to_be_visible()
            assert page.locator("iframe").count() == 0
    identity_provider.set_lifetime(LIFETIME_SECONDS)
    assert router.joins == 1


def test_a_renewed_token_without_the_group_ends_the_subscription(visitor, router, identity_provider, user):
    identity_provider.set_lifetime(SHORT_SECONDS)
    router.publish(TOPIC, "before")
    page = sign_in(visitor, user)
    expect(page.get_by_text("before")).to_be_visible()

    identity_provider.set_user(user, groups=["lab"], role="subscriber")
    wait_for(lambda: router.subscriptions() == 0, "the end of the subscription", seconds=4 * SHORT_SECONDS)
    router.publish(TOPIC, "only for the group")

    expect(page.get_by_text("permission was revoked")).to_be_visible()
    expect(page.get_by_text("before")).to_be_visible()
    expect(page.get_by_text("only for the group")).not_to_be_visible()
    assert router.joins == 1


def test_a_user_who_has_left_is_asked_to_sign_in_again_before_the_session_ends(
    visitor, router, identity_provider, issuer, user
):
    router.issuers = (replace(issuer, skew_seconds=0),)
    identity_provider.set_lifetime(SHORT_SECONDS)
    page = sign_in(visitor, user)
    identity_provider.remove_user(user)

    notice = page.locator(".renewal")
    expect(notice).to_contain_text("the sign-in has ended at the provider: sign in again")
    expect(notice).to_contain_text(re.compile(r"Events end at \d\d:\d\d:\d\d"))
    wait_for(lambda: datetime.now(UTC) > router.token_ends(), "the token's end", seconds=4 * SHORT_SECONDS)
    router.end_tokens()

    expect(page.get_by_role("dialog")).to_contain_text("The session ended")


def test_a_session_that_is_lost_is_joined_again_with_the_token(visitor, router, user):
    page = sign_in(visitor, user)
    router.cut()
    router.publish(TOPIC, "meanwhile")

    expect(page.get_by_text("meanwhile")).to_be_visible()
    assert router.joins == 2


def test_sign_out_revokes_the_sign_in_and_offers_to_end_that_at_the_provider(visitor, router, user):
    revoked: list[str] = []
    visitor.page.on("request", lambda request: revoked.append(request.url) if "revocation" in request.url else None)
    page = sign_in(visitor, user)

    page.get_by_role("button", name="Sign out").click()

    page.get_by_role("button", name="Yes, sign me out").click()
    expect(page.get_by_role("button", name="Sign in with lab")).to_be_visible()
    assert len(revoked) == 1
    assert "eyJ" not in stored(page)


def test_a_refused_sign_in_is_explained_on_the_page(visitor):
    page = visitor.page
    page.goto(visitor.url)
    page.get_by_role("button", name="Sign in with lab").click()
    page.get_by_role("link", name="Cancel").click()

    expect(page.get_by_role("alert")).to_contain_text("The sign-in was refused at the provider: sign in again")
    assert "error" not in page.url
    expect(page.get_by_role("button", name="Sign in with lab")).to_be_visible()


def test_a_user_without_rights_gets_the_routers_reason(visitor, identity_provider, user):
    identity_provider.set_user(user, groups=[], role="subscriber")
    page = visitor.page
    page.goto(visitor.url)
    pass_forms(page, user)

    expect(page.get_by_role("alert")).to_contain_text("This user has no rights in this realm")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("?code=stolen&state=other", "This sign-in did not begin in this tab: sign in again"),
        ("?error=server_error&state=other", "This sign-in did not begin in this tab: sign in again"),
    ],
)
def test_an_answer_that_nobody_asked_for_is_refused(visitor, query, text):
    visitor.page.goto(f"{visitor.url}{query}")

    expect(visitor.page.get_by_role("alert")).to_contain_text(text)
    assert "?" not in visitor.page.url


@pytest.mark.parametrize(
    ("changed", "text"),
    [("state", "The answer is not that of this sign-in"), ("iss", "Another provider answered")],
)
def test_an_answer_with_another_state_or_issuer_is_refused(visitor, changed, text):
    page = visitor.page
    page.goto(visitor.url)
    with page.expect_request("**/auth?*") as asked:
        page.get_by_role("button", name="Sign in with lab").click()
    page.get_by_placeholder("Enter any login").wait_for()
    (state,) = parse_qs(urlsplit(asked.value.url).query)["state"]
    answer = {"code": "stolen", "state": state, changed: "forged"}

    page.goto(f"{visitor.url}?{urlencode(answer)}")

    expect(page.get_by_role("alert")).to_contain_text(text)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_with_providers_is_accessible_and_fits_a_phone(chromium, router, issuer, scheme):
    router.issuers = (issuer, Issuer("https://login.a-partner-with-a-long-name.example", issuer.audience))
    with (
        serving(router.url, str(live_router.REALM), issuers=router.issuers) as url,
        new_visitors(chromium, url) as opened,
    ):
        page = opened(viewport={"width": 320, "height": 640}, color_scheme=scheme).page
        page.goto(url)
        button = page.get_by_role("button", name="Sign in with login.a-partner-with-a-long-name.example")
        button.wait_for()

        box = button.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 320
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        assert violations(page) == []


def test_the_way_to_the_provider_needs_no_mouse(visitor):
    page = visitor.page
    page.goto(visitor.url)
    expect(page.get_by_label("Name")).to_be_focused()
    page.get_by_role("button", name="Sign in with lab").wait_for()
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("button", name="Sign in with lab")).to_be_focused()

    page.keyboard.press("Enter")

    expect(page.get_by_placeholder("Enter any login")).to_be_visible()


def test_a_provider_that_does_not_answer_is_named(chromium, router, issuer):
    router.issuers = (Issuer("http://127.0.0.1:1", issuer.audience),)
    with serving(router.url, str(live_router.REALM), issuers=router.issuers) as url:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(url)
        page.get_by_role("button", name="Sign in with 127.0.0.1:1").click()

        expect(page.get_by_role("alert")).to_contain_text("127.0.0.1:1 cannot be reached from this page")
        context.close()


def test_the_policy_admits_no_other_provider(visitor, identity_provider):
    visitor.page.goto(visitor.url)
    other = identity_provider.url.replace("127.0.0.1", "localhost")

    refused = visitor.page.evaluate(f"fetch('{other}/.well-known/openid-configuration').then(() => false, () => true)")

    assert refused
    assert all("Content Security Policy" in problem for problem in visitor.problems)
    visitor.problems.clear()
