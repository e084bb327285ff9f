"""The OpenID provider of the tests issues real tokens, and does with them what the tests of sign-in need."""

import json
import os
import subprocess
import sys
from urllib.request import urlopen

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from signalbox.errors import UnavailableError
from signalbox.local.files import CHECKOUT
from tests.identity import provider
from tests.identity.provider import IdentityProvider
from tests.identity_provider import access_token


def published_keys(of: IdentityProvider) -> KeySet:
    with urlopen(f"{of.url}/.well-known/openid-configuration") as answer:
        keys_url = json.load(answer)["jwks_uri"]
    with urlopen(keys_url) as answer:
        return KeySet.import_key_set(json.load(answer))


def claims(of: IdentityProvider, token: str) -> dict[str, object]:
    """Return the claims of a token whose signature is right."""
    return jwt.decode(token, published_keys(of), algorithms=["RS256"]).claims


def test_lifetimes_and_keys_change_on_request(identity_provider):
    old = access_token(identity_provider, "ann")
    identity_provider.set_lifetime(5)
    identity_provider.rotate_keys()
    new = access_token(identity_provider, "ann")
    identity_provider.set_lifetime(provider.LIFETIME_SECONDS)

    found = claims(identity_provider, new)
    assert found["exp"] - found["iat"] == 5
    assert jwt.decode(old, published_keys(identity_provider), algorithms=["RS256"]).header["kid"] == "key-1"
    assert jwt.decode(new, published_keys(identity_provider), algorithms=["RS256"]).header["kid"] != "key-1"


def test_a_used_port_is_reported(identity_provider):
    port = int(identity_provider.url.rpartition(":")[2])

    with pytest.raises(UnavailableError, match="its port may be in use"), provider.running(port=port):
        pass


def test_the_provider_of_the_local_stage_prints_how_to_trust_it_and_ends_on_request(tmp_path):
    folder = tmp_path / ".signalbox"
    folder.mkdir()
    local = {"page_url": "http://127.0.0.1:4566/live/", "realm": "xtrial.fifo"}
    (folder / "local.json").write_text(json.dumps(local))
    program = "from tests.identity.command import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "--port", "0"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        runs, trust, _ = (process.stdout.readline() for _ in range(3))
        url = runs.split()[4]
        with urlopen(f"{url}/.well-known/openid-configuration") as answer:
            found = json.load(answer)["issuer"]
        process.terminate()

    assert found == url
    assert f"signalbox exchange declare xtrial.fifo --live --issuer {url} --audience {provider.AUDIENCE}" in trust
    assert process.returncode == 0
