"""Runs `oidc-provider`, a certified OpenID provider, on loopback: it ends with the process that started it."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from signalbox.errors import UnavailableError
from signalbox.local import tools
from tests.tiers import javascript

PROGRAM = Path(__file__).with_name("provider.mjs")
AUDIENCE = "urn:signalbox:live"
CLIENT, SILENT_CLIENT = "signalbox", "signalbox-silent"  # the second one gets no refresh tokens
LIFETIME_SECONDS = 3600
ANY_PAGE = "http://127.0.0.1/live/"  # a client must have a redirect URL
# The password of each is not asked: the provider's forms take any.
USERS: Mapping[str, Mapping[str, object]] = {
    "ann": {"email": "ann@lab.example", "email_verified": True, "groups": ["imaging", "lab"], "role": "subscriber"},
    "ben": {"email": "ben@lab.example", "email_verified": False, "groups": ["lab"], "role": "source"},
    "eve": {"email": "eve@lab.example", "email_verified": True, "groups": [], "role": "subscriber"},
}


@dataclass(slots=True)
class IdentityProvider:
    """A running provider. `url` is its issuer, and `users` are the claims of each user by name."""

    process: subprocess.Popen[str]
    url: str
    audience: str
    users: dict[str, Mapping[str, object]]
    pages: list[str] = field(default_factory=lambda: [ANY_PAGE])

    def rotate_keys(self) -> None:
        """Sign with a new key from now on; the older ones stay published."""
        self._change(rotate_keys=True)

    def set_lifetime(self, seconds: int) -> None:
        """Set the lifetime of the access and ID tokens that are issued from now on."""
        self._change(lifetime=seconds)

    def set_user(self, name: str, **claims: object) -> None:
        """Add a user with claims, or replace those of an existing one; they are in tokens issued from now on."""
        self.users[name] = claims
        self._change(users=self.users)

    def remove_user(self, name: str) -> None:
        """Remove a user: the provider refuses to renew the user's tokens."""
        self.users.pop(name)
        self._change(users=self.users)

    def add_page(self, url: str) -> None:
        """Permit the live page at an address to sign in."""
        self.pages.append(url)
        self._change(pages=self.pages)

    def _change(self, **settings: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps(settings)}\n")
        self.process.stdin.flush()
        _answer(self.process)


@contextmanager
def running(
    *, port: int = 0, pages: Sequence[str] = (), lifetime: int = LIFETIME_SECONDS
) -> Iterator[IdentityProvider]:
    """Run a provider on loopback, by default on a free port.

    Raises `UnavailableError` if it does not start, for example because the port is in use.
    """
    users, urls = dict(USERS), [ANY_PAGE, *pages]
    settings = {"port": port, "audience": AUDIENCE, "lifetime": lifetime, "pages": urls, "users": users}
    command = [str(tools.node()), str(PROGRAM), str(javascript.modules()), json.dumps(settings)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=tools.environment(os.environ)
    ) as process:
        try:
            yield IdentityProvider(process, str(_answer(process)["issuer"]), AUDIENCE, users, urls)
        finally:
            process.terminate()


def _answer(process: subprocess.Popen[str]) -> dict[str, object]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise UnavailableError("the OpenID provider does not run: its port may be in use")
    answer: dict[str, object] = json.loads(line)
    return answer
