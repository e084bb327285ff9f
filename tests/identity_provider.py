"""Users of the real OpenID provider, who sign in by its forms without a browser, and the tokens that they get."""

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http import HTTPStatus
from http.cookiejar import CookieJar
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, OpenerDirector, Request, build_opener

from tests.identity.provider import ANY_PAGE, CLIENT, IdentityProvider

SCOPE = "openid offline_access live"
FORMS = 5  # the code, its confirmation, the login and the consent


@dataclass(slots=True)
class _Forms(HTMLParser):
    """The first form of a page, and the link that refuses it."""

    action: str | None = None
    fields: dict[str, str] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form" and self.action is None:
            self.action = given.get("action") or ""
        elif tag == "input" and given.get("name"):
            self.fields[str(given["name"])] = given.get("value") or ""
        elif tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def tokens(provider: IdentityProvider, user: str, *, client: str = CLIENT, resource: bool = True) -> dict[str, Any]:
    """Sign a user in by authorization code, and return the answer of the token endpoint."""
    verifier, audience = secrets.token_urlsafe(48), {"resource": provider.audience} if resource else {}
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "client_id": client,
        "response_type": "code",
        "redirect_uri": ANY_PAGE,
        "scope": SCOPE,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        **audience,
    }
    landed = submit_forms(f"{provider.url}/auth?{urlencode(asked)}", user)
    (code,) = parse_qs(urlsplit(landed).query)["code"]
    grant = {"grant_type": "authorization_code", "client_id": client, "code": code, "redirect_uri": ANY_PAGE}
    return _token_answer(provider, {**grant, "code_verifier": verifier, **audience})


def access_token(provider: IdentityProvider, user: str) -> str:
    """Return a JWT access token of a user for the provider's audience."""
    return str(tokens(provider, user)["access_token"])


def id_token(provider: IdentityProvider, user: str, *, client: str = CLIENT) -> str:
    """Return an ID token of a user; its audience is the client."""
    return str(tokens(provider, user, client=client, resource=False)["id_token"])


def _token_answer(provider: IdentityProvider, fields: Mapping[str, str]) -> dict[str, Any]:
    with build_opener().open(f"{provider.url}/token", urlencode(fields).encode()) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def approve_device(url: str, user: str) -> None:
    """Approve a sign-in by device code as a user; `url` contains the code."""
    submit_forms(url, user)


def refuse_device(url: str, user: str) -> None:
    """Refuse a sign-in by device code as a user: cancel at the form for consent."""
    submit_forms(url, user, refuses=True)


def submit_forms(url: str, user: str, *, refuses: bool = False) -> str:
    """Open a URL of the provider, submit its forms as a user, and return the URL of the last redirect or page."""
    browser = build_opener(HTTPCookieProcessor(CookieJar()), _NoRedirect())
    origin, body, has_refused = urlsplit(url).netloc, None, False
    for _ in range(4 * FORMS):
        status, location, page = _opened(browser, url, body)
        if location is not None:
            url, body = urljoin(url, location), None
            if urlsplit(url).netloc != origin:
                return url
            continue
        forms = _Forms()
        forms.feed(page)
        if forms.action is None or status != HTTPStatus.OK or has_refused:
            return url
        if refuses and forms.fields.get("prompt") == "consent":
            has_refused = True
            url = urljoin(url, next(link for link in forms.links if link.endswith("/abort")))
            continue
        answers = {"login": user, "password": "any"}
        fields = {name: answers.get(name, value) for name, value in forms.fields.items()}
        url, body = urljoin(url, forms.action), urlencode(fields).encode()
    raise AssertionError(f"the provider's forms do not end: {url}")


def _opened(browser: OpenerDirector, url: str, body: bytes | None) -> tuple[int, str | None, str]:
    """Return the status, the address of a redirect, and the text of a response."""
    try:
        with browser.open(Request(url, body)) as answer:  # noqa: S310 - the provider's own address
            return answer.status, None, answer.read().decode()
    except HTTPError as error:
        return error.code, error.headers.get("Location"), error.read().decode()
