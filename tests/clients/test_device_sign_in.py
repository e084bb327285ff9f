"""Sign-in by device code with a real OpenID provider: codes, polls, stored refresh tokens and their rotation."""

import json
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from signalbox.clients.identity.device import DeviceCode, sign_in
from signalbox.clients.identity.provider import (
    ErrorAnswer,
    InvalidProvider,
    Provider,
    ProviderUnavailable,
    SignInRefused,
)
from signalbox.clients.identity.sign_ins import SignIn, SignIns
from signalbox.clients.identity.signed_in import SignedIn, sign_out
from signalbox.clients.identity.tokens import TokenRequest, claims_of, seconds_to_renewal
from signalbox.errors import RejectedError
from tests.fakes.http_endpoint import Handler, serving
from tests.identity.provider import CLIENT, LIFETIME_SECONDS, IdentityProvider
from tests.identity_provider import access_token, approve_device, refuse_device


@pytest.fixture
def asked(identity_provider: IdentityProvider) -> TokenRequest:
    return TokenRequest(identity_provider.url, CLIENT, identity_provider.audience)


@pytest.fixture
def sign_ins(tmp_path: Path) -> SignIns:
    return SignIns(tmp_path / "state" / "signalbox")


class User:
    """A user with a phone: does something with the code while the command waits for its next poll."""

    def __init__(self, act: Callable[[str], object]) -> None:
        self.act = act
        self.codes: list[DeviceCode] = []

    def show(self, code: DeviceCode) -> None:
        self.codes.append(code)

    def sleep(self, _: float) -> None:
        self.act(str(self.codes[-1].complete_url))


def approving(name: str) -> User:
    return User(lambda url: approve_device(url, name))


def signed_in(asked: TokenRequest, sign_ins: SignIns, user: User, *, now: Callable[[], float] = time.time) -> SignedIn:
    return SignedIn(asked, sign_ins, user.show, user.sleep, now)


def test_the_user_approves_the_code_and_the_token_is_the_users(asked, sign_ins, identity_provider):
    user = approving("ann")

    claims = claims_of(signed_in(asked, sign_ins, user).token())

    assert (claims["sub"], claims["aud"], claims["groups"]) == ("ann", identity_provider.audience, ["imaging", "lab"])
    (code,) = user.codes
    assert code.url == f"{identity_provider.url}/device"
    assert code.user_code in str(code.complete_url)


def test_a_realm_whose_audience_is_the_client_gets_the_id_token(identity_provider, sign_ins):
    asked = TokenRequest(identity_provider.url, CLIENT, CLIENT)

    assert claims_of(signed_in(asked, sign_ins, approving("ann")).token())["aud"] == CLIENT


def test_the_next_command_signs_in_without_the_user(asked, sign_ins):
    signed_in(asked, sign_ins, approving("ann")).token()
    nobody = User(lambda _: None)

    token = signed_in(asked, sign_ins, nobody).token()

    assert claims_of(token)["sub"] == "ann"
    assert nobody.codes == []


def test_a_sign_in_for_one_live_page_serves_no_other_and_ends_with_all(asked, sign_ins):
    signed_in(asked, sign_ins, approving("ann")).token()
    other = replace(sign_ins, page="https://elsewhere.example/live/")

    assert other.find(asked) is None
    (kept,) = other.every()
    sign_out(other, kept)
    assert sign_ins.find(asked) is None


def test_a_refresh_token_is_stored_for_this_user_only_and_replaced_by_each_renewal(asked, sign_ins):
    signed_in(asked, sign_ins, approving("ann")).token()
    first = sign_ins.find(asked)
    signed_in(asked, sign_ins, approving("ann")).token()

    file = sign_ins.folder / "sign-ins.json"
    assert sign_ins.find(asked) not in (None, first)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(sign_ins.folder.stat().st_mode) == 0o700


def test_two_commands_share_a_sign_in_whose_refresh_tokens_are_valid_once(asked, sign_ins):
    signed_in(asked, sign_ins, approving("ann")).token()
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(signed_in(asked, sign_ins, User(lambda _: None)).token()))
        for _ in range(4)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [claims_of(token)["sub"] for token in found] == ["ann"] * 4


def test_a_token_is_renewed_when_it_is_about_to_end_and_not_before(asked, sign_ins, identity_provider):
    clock = [time.time()]
    source = signed_in(asked, sign_ins, approving("ann"), now=lambda: clock[0])
    first = source.token()
    again = source.token()
    identity_provider.set_user("ann", groups=["lab"])

    clock[0] += LIFETIME_SECONDS - 60
    renewed = source.token()
    identity_provider.set_user("ann", **ANN)

    assert again == first
    assert claims_of(renewed)["groups"] == ["lab"]


ANN = {"email": "ann@lab.example", "email_verified": True, "groups": ["imaging", "lab"], "role": "subscriber"}


def test_a_user_who_left_must_sign_in_again(asked, sign_ins, identity_provider):
    clock = [time.time()]
    identity_provider.set_user("zoe", groups=[])
    source = signed_in(asked, sign_ins, approving("zoe"), now=lambda: clock[0])
    source.token()
    identity_provider.remove_user("zoe")

    clock[0] += LIFETIME_SECONDS - 60

    with pytest.raises(SignInRefused, match="run the command again to sign in"):
        source.token()
    assert sign_ins.find(asked) is None


def test_a_refused_sign_in_says_what_to_do(asked, sign_ins):
    with pytest.raises(SignInRefused, match="refused at the provider: start again"):
        signed_in(asked, sign_ins, User(lambda url: refuse_device(url, "ann"))).token()

    assert sign_ins.every() == []


def test_a_code_that_nobody_approves_expires(asked, sign_ins):
    polls: list[float] = []
    user = User(lambda _: polls.append(1))

    with pytest.raises(SignInRefused, match="the code has expired: start again"):
        signed_in(asked, sign_ins, user).token()

    assert len(polls) == user.codes[0].expires_in_seconds / 5


def test_sign_out_revokes_the_refresh_token_and_forgets_it(asked, sign_ins):
    source = signed_in(asked, sign_ins, approving("ann"))
    source.token()
    (kept,) = sign_ins.every()

    assert sign_out(sign_ins, kept)

    assert sign_ins.every() == []
    answer = Provider.discover(asked.issuer).request(
        "token_endpoint",
        {"grant_type": "refresh_token", "refresh_token": kept.refresh_token, "client_id": CLIENT},
    )
    assert getattr(answer, "code", None) == "invalid_grant"


def test_sign_out_forgets_also_when_the_provider_is_gone(sign_ins):
    kept = SignIn(TokenRequest("http://127.0.0.1:1", CLIENT, CLIENT), "refresh")
    with sign_ins.locked():
        sign_ins.put(kept.asked, kept.refresh_token)

    assert not sign_out(sign_ins, kept)
    assert sign_ins.every() == []


@pytest.mark.parametrize("content", ["{", "[]x"])
def test_a_damaged_file_is_reported(asked, sign_ins, content):
    with sign_ins.locked():
        sign_ins.put(asked, "refresh")
    (sign_ins.folder / "sign-ins.json").write_text(content)

    with pytest.raises(RejectedError, match="is damaged: delete it"):
        sign_ins.every()


def test_a_file_that_others_can_read_is_refused(asked, sign_ins):
    with sign_ins.locked():
        sign_ins.put(asked, "refresh")
    (sign_ins.folder / "sign-ins.json").chmod(0o644)

    with pytest.raises(RejectedError, match="chmod 600"):
        sign_ins.find(asked)


# --- providers


def test_a_provider_must_describe_exactly_its_issuer(identity_provider):
    with pytest.raises(InvalidProvider, match="give exactly its URL"):
        Provider.discover(f"{identity_provider.url}/")


@pytest.mark.parametrize(
    ("url", "error", "text"),
    [
        ("http://accounts.example", InvalidProvider, "is not an https URL"),
        ("ftp://127.0.0.1", InvalidProvider, "is not an https URL"),
        ("http://127.0.0.1:1", ProviderUnavailable, "does not answer"),
    ],
)
def test_a_wrong_address_is_reported(url, error, text):
    with pytest.raises(error, match=text):
        Provider.discover(url)


def test_an_unknown_client_is_refused(identity_provider, sign_ins):
    asked = TokenRequest(identity_provider.url, "stranger", "stranger")

    with pytest.raises(SignInRefused, match="issues no device code"):
        signed_in(asked, sign_ins, approving("ann")).token()


# oidc-provider asks no client to slow down, and never fails: RFC 8628, 3.5, has both.


def test_a_redirect_is_not_followed_with_what_was_sent():
    with scripted_provider((302, {})) as url:
        answer = Provider.discover(url).request("token_endpoint", {"device_code": "d"})

    assert answer == ErrorAnswer("302")


@contextmanager
def scripted_provider(*answers: tuple[int, dict[str, object]]) -> Iterator[str]:
    """Run a provider whose token endpoint gives these answers, in this order."""
    left = list(answers)

    class Provided(Handler):
        def respond(self) -> None:
            form = parse_qs(self.received().decode())
            if self.command == "GET":
                endpoints = {"token_endpoint": f"{url}/token", "device_authorization_endpoint": f"{url}/device"}
                self.reply(200, {"issuer": url, **endpoints})
            elif "device_code" in form:
                self.reply(*left.pop(0))
            else:
                code = {"device_code": "d", "user_code": "u", "verification_uri": f"{url}/v", "expires_in": 600}
                self.reply(200, {**code, "interval": 3})

        def reply(self, status: int, document: dict[str, object]) -> None:
            self.answer(json.dumps(document), status=status, headers={"Location": f"{url}/elsewhere"})

    with serving(Provided) as url:
        yield url


def test_polls_follow_the_interval_and_become_slower_on_request():
    pending, slower = (400, {"error": "authorization_pending"}), (400, {"error": "slow_down"})
    pauses: list[float] = []
    with scripted_provider(pending, slower, pending, (503, {}), (200, {"access_token": "t"})) as url:
        asked = TokenRequest(url, CLIENT, "urn:a")

        answer = sign_in(Provider.discover(url), asked, lambda _: None, sleep=pauses.append)

    assert answer == {"access_token": "t"}
    assert pauses == [3, 3, 8, 8, 16]


def test_an_answer_without_a_token_is_reported(sign_ins):
    with scripted_provider((200, {})) as url:
        source = SignedIn(TokenRequest(url, CLIENT, "urn:a"), sign_ins, lambda _: None, lambda _: None)

        with pytest.raises(InvalidProvider, match="answers without access_token"):
            source.token()


# --- when a token is renewed


def test_a_token_is_renewed_before_its_end_also_by_a_slow_clock(identity_provider):
    token = access_token(identity_provider, "ann")
    issued_at = float(claims_of(token)["iat"])

    assert seconds_to_renewal(token, now=issued_at) == LIFETIME_SECONDS - 120
    assert seconds_to_renewal(token, now=issued_at - 9999) == LIFETIME_SECONDS - 120
    assert seconds_to_renewal(token, now=issued_at + LIFETIME_SECONDS) == -120


@pytest.mark.parametrize("token", ["", "opaque", "a.b.c", "a.W10.c"])
def test_a_token_of_another_format_has_no_known_end(token):
    assert seconds_to_renewal(token, now=0) is None
