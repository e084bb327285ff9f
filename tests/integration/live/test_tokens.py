"""Users of a real OpenID provider on the stage: they join with its tokens, renew them in place, and end with them."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection

from signalbox.local.stage_folder import StageFolder
from tests.identity.provider import LIFETIME_SECONDS, IdentityProvider
from tests.identity_provider import access_token, id_token
from tests.integration.live.page import WorkingFolder
from tests.integration.live.stage import ROLES, TrialRealm, ask, connected, new_topic, received
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

SHORT_SECONDS, LONG_SECONDS = 30, LIFETIME_SECONDS


def join(socket: ClientConnection, place: TrialRealm, token: str) -> list[Any]:
    """Return the router's answer to a token: WELCOME or ABORT."""
    challenge = ask(socket, 1, place.realm, {"authmethods": ["ticket"], "roles": ROLES})
    return ask(socket, 5, token, {}) if challenge[0] == 4 else challenge


def welcome(place: TrialRealm, token: str) -> dict[str, Any] | None:
    with connected(place) as socket:
        answer = join(socket, place, token)
    return answer[2] if answer[0] == 2 else None


@pytest.fixture
def topic(
    place: TrialRealm, identity_provider: IdentityProvider, stage_folder: StageFolder, tmp_path: Path
) -> Iterator[str]:
    """A topic that the group `imaging` may read, in a realm that trusts the provider."""
    desk, topic = WorkingFolder.at(tmp_path, stage_folder), new_topic()
    desk.run(
        *("exchange", "declare", place.realm, "--issuer", identity_provider.url, "--issuer-label", "lab"),
        *("--audience", identity_provider.audience, "--clock-skew", "0"),
    )
    desk.run("grant", "add", "@imaging", place.realm, topic)
    yield topic
    identity_provider.set_lifetime(LONG_SECONDS)
    desk.run("grant", "remove", "@imaging", place.realm, topic)
    desk.run("exchange", "declare", place.realm, "--issuer", "")


@pytest.mark.release
def test_a_user_of_a_provider_joins_renews_the_token_and_ends_with_it(place, identity_provider, topic):
    first = access_token(identity_provider, "ann")
    # An instance of a function knows the settings of the realm for a second.
    details = wait_for(lambda: welcome(place, first), "a session of the provider's user", seconds=60, every=1)
    assert (details["authid"], details["authrole"], details["authprovider"]) == ("ann@lab", "subscriber", "lab")

    identity_provider.rotate_keys()
    rotated = access_token(identity_provider, "ann")
    # An unknown key is looked up once in five seconds.
    wait_for(lambda: welcome(place, rotated), "a session by a token with the new key", seconds=60, every=1)
    identity_provider.set_lifetime(SHORT_SECONDS)
    with connected(place) as socket, place.publisher() as publisher:
        started = time.monotonic()
        assert join(socket, place, access_token(identity_provider, "ann"))[0] == 2
        assert ask(socket, 32, 1, {}, topic)[0] == 33
        publisher.publish(topic, options={"acknowledge": True})
        assert received(socket)[0] == 36
        # The token ends where its session would, so the session has to be renewed.
        renewal = ask(socket, 48, 2, {}, "signalbox.session.renew", [access_token(identity_provider, "ann")])
        assert renewal[0] == 50, renewal
        (_, details, reason) = received(socket)

        assert reason == "signalbox.close.token_expired", details
        assert time.monotonic() - started >= SHORT_SECONDS - 1


def test_tokens_that_are_not_for_the_realm_are_refused(place, identity_provider, topic):
    valid = access_token(identity_provider, "ann")
    wait_for(lambda: welcome(place, valid), "a session of the provider's user", seconds=60, every=1)
    header, claims, _ = valid.split(".")

    for token in (id_token(identity_provider, "ann"), f"{header}.{claims}.{'A' * 342}", "eyJhbGciOiJub25lIn0.e30."):
        with connected(place) as socket:
            assert join(socket, place, token)[2] == "wamp.error.authentication_failed"
    with connected(place) as socket:  # without a group, without a right
        assert join(socket, place, access_token(identity_provider, "eve"))[2] == "wamp.error.not_authorized"
