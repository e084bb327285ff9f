"""`tail --sign-in` and `sign-out` with a real OpenID provider, against a router in memory and the live page."""

import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner

from signalbox.aws.live.issuers import IssuerKeys
from signalbox.aws.live.json_documents import JsonDocuments
from signalbox.aws.live.tokens import JwtVerifier
from signalbox.cli.live import sign_in
from signalbox.cli.live.sign_in import RealmIssuer, chosen
from signalbox.cli.main import app
from signalbox.clients.identity.tokens import TokenRequest
from signalbox.errors import RejectedError
from signalbox.exchange.model.issuers import Issuer
from tests.browser.site import serving
from tests.fakes.live_router import REALM, Router, grants, running
from tests.identity.provider import CLIENT, LIFETIME_SECONDS, IdentityProvider
from tests.identity_provider import approve_device
from tests.patience import wait_for

PROGRAM = [sys.executable, "-c", "from signalbox.cli.main import main; main()"]
END_SECONDS = 240
SHORT_SECONDS = 6  # renewed after four; the issuer's skew of a minute keeps a busy machine from being late
CODE = re.compile(r"or open (\S+user_code=\S+)")


@pytest.fixture
def router(identity_provider: IdentityProvider) -> Iterator[Router]:
    issuer = Issuer(identity_provider.url, identity_provider.audience, label="lab", client_id=CLIENT)
    with running({}) as found:
        found.issuers, found.tokens = (issuer,), JwtVerifier(IssuerKeys(JsonDocuments(allows_loopback=True)))
        found.group_rights["imaging"] = grants("trial.")
        found.group_rights["lab"] = grants("other.")
        yield found
    identity_provider.set_lifetime(LIFETIME_SECONDS)


@pytest.fixture
def page_url(router: Router) -> Iterator[str]:
    with serving(router.url, str(REALM), issuers=router.issuers) as url:
        yield url


@dataclass(slots=True)
class Running:
    """A running command. `said` is what it printed to standard error so far."""

    process: "subprocess.Popen[str]"
    said: list[str] = field(default_factory=list)

    def listen(self) -> None:
        assert self.process.stderr is not None
        self.said.extend(iter(self.process.stderr.readline, ""))

    def code_url(self) -> str:
        """Return the address at which the user approves the command."""

        def found() -> re.Match[str] | None:
            assert self.process.poll() is None, self.said
            return CODE.search("".join(self.said))

        return wait_for(found, "the code", seconds=END_SECONDS)[1]

    def ended(self) -> tuple[int, list[str]]:
        """Wait for the end; return the exit code and the lines of standard output."""
        assert self.process.stdout is not None
        printed = self.process.stdout.read().splitlines()
        return self.process.wait(END_SECONDS), printed


@dataclass(frozen=True, slots=True)
class Machine:
    """A user's machine without AWS credentials, with a state folder of its own."""

    home: Path

    @property
    def environment(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SIGNALBOX_"))}
        return {**kept, "XDG_STATE_HOME": str(self.home / "state")}

    @property
    def file(self) -> Path:
        return self.home / "state" / "signalbox" / "sign-ins.json"

    @contextmanager
    def runs(self, *words: str) -> Iterator[Running]:
        with subprocess.Popen(  # noqa: S603 - our own program
            [*PROGRAM, *words],
            cwd=self.home,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            command = Running(process)
            thread = threading.Thread(target=command.listen, daemon=True)
            watchdog = threading.Timer(END_SECONDS, process.kill)
            thread.start()
            watchdog.start()
            try:
                yield command
                thread.join()
            finally:
                watchdog.cancel()
                process.kill()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def tail(page_url: str) -> list[str]:
    return ["tail", "trial.log", "--page", page_url, "--sign-in"]


def test_a_user_signs_in_by_a_code_and_the_output_stays_clean(machine, tail, router):
    router.publish("trial.log", "for the group")

    with machine.runs(*tail, "--no-follow", "--json") as command:
        approve_device(command.code_url(), "ann")
        status, printed = command.ended()

    assert status == 0
    assert [json.loads(line)["args"] for line in printed] == [["for the group"]]
    assert "eyJ" not in "".join(command.said)  # how every JWT begins
    assert stat.S_IMODE(machine.file.stat().st_mode) == 0o600


def test_a_stored_sign_in_needs_no_code_until_sign_out(machine, tail, router):
    router.publish("trial.log", "again")
    with machine.runs(*tail, "--no-follow") as command:
        approve_device(command.code_url(), "ann")
        assert command.ended()[0] == 0

    with machine.runs(*tail, "--no-follow") as second:
        status, printed = second.ended()
    with machine.runs("sign-out") as out:
        out_status, out_printed = out.ended()
    with machine.runs(*tail, "--no-follow") as third:
        assert third.code_url()
        third.process.terminate()

    assert (status, len(printed), second.said) == (0, 1, [])
    assert (out_status, out.said) == (0, [])
    assert out_printed == [f"signed out of {router.issuers[0].url}"]
    assert json.loads(machine.file.read_text()) == {}


def test_a_running_command_renews_its_token_and_loses_what_a_new_one_lacks(machine, tail, router, identity_provider):
    identity_provider.set_lifetime(SHORT_SECONDS)
    identity_provider.set_user("tom", groups=["imaging", "lab"])
    with machine.runs(*tail, "--json") as command:
        approve_device(command.code_url(), "tom")
        wait_for(lambda: router.subscriptions() == 1, "the subscription", seconds=END_SECONDS)
        first = router.token_ends()
        wait_for(lambda: (router.token_ends() or first) > first, "the renewal", seconds=END_SECONDS)
        router.publish("trial.log", "after the renewal")
        identity_provider.set_user("tom", groups=["lab"])
        status, printed = command.ended()

    assert [json.loads(line)["args"] for line in printed] == [["after the renewal"]]
    assert status == 2
    assert "'trial.log' is not open to this user any more" in "".join(command.said)
    assert router.joins == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--user", "ann"], "--sign-in and --user exclude each other"),
        (["--aws"], "--page and --aws exclude each other"),
        (["--issuer", "other"], "has no identity provider 'other': give --issuer with one of lab"),
        (["--exchange", "xother.fifo"], "xother.fifo has no identity provider: `signalbox exchange declare"),
    ],
)
def test_wrong_options_are_refused_with_the_reason(tail, words, text):
    result = CliRunner().invoke(app, [*tail, *words])

    assert isinstance(result.exception, RejectedError)
    assert text in str(result.exception)


def test_an_issuer_without_a_sign_in_is_refused(page_url):
    result = CliRunner().invoke(app, ["tail", "trial.log", "--page", page_url, "--issuer", "lab"])

    assert "--issuer needs --sign-in" in str(result.exception)


def test_a_page_without_one_realm_needs_its_name(router):
    with serving(router.url, "xa.fifo", "xb.fifo") as url:
        result = CliRunner().invoke(app, ["watch", "trial.record", "--page", url, "--sign-in"])

    assert "--exchange must be given" in str(result.exception)


def test_a_page_whose_connections_are_not_encrypted_is_refused(monkeypatch):
    monkeypatch.setattr(sign_in, "page_config", lambda _: {"websocket_url": "ws://stage.example/live", "realms": []})
    words = ["tail", "trial.log", "--page", "https://stage.example/live/", "--sign-in"]

    assert "is not encrypted: tickets and tokens need wss" in str(CliRunner().invoke(app, words).exception)


def test_an_address_copied_from_a_browser_is_understood(page_url):
    words = ["tail", "trial.log", "--page", f"{page_url}index.html?x=1#/topics", "--sign-in", "--issuer", "other"]

    assert "has no identity provider 'other'" in str(CliRunner().invoke(app, words).exception)


def test_sign_out_without_a_sign_in_says_so(machine):
    with machine.runs("sign-out") as command:
        assert command.ended() == (0, ["no sign-in is stored"])


def test_one_of_several_providers_is_chosen_by_label_or_url():
    lab, partner = (
        RealmIssuer(label, TokenRequest(f"https://{label or 'partner'}.example", "c", "a")) for label in ("lab", "")
    )

    assert chosen([lab, partner], "x.fifo", "lab") is lab
    assert chosen([lab, partner], "x.fifo", "https://partner.example") is partner
    with pytest.raises(RejectedError, match="several identity providers: give --issuer with one of lab, https://partn"):
        chosen([lab, partner], "x.fifo", None)
