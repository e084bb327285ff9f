"""The options of `signalbox arvados bridge`, and the realms that it refuses, against a stage."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from signalbox.cli.live.bridge import LiveLogin
from signalbox.cli.main import app
from signalbox.cli.shared.stage import StageOptions
from signalbox.errors import RejectedError, UnavailableError
from tests.cli.exchange.stage import exchange_stage
from tests.cli.shared.stage import FakeStage, Refusal
from tests.fakes.aws import aws  # noqa: F401 - a fixture

REALM, URL = "xs_cluster.fifo", "ws://127.0.0.1:1/"
LIVE = {"order_by": "exchange", "retention": {"count": 1000, "age_seconds": timedelta(days=1).total_seconds()}}


@pytest.fixture
def stage(aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStage]:  # noqa: F811
    monkeypatch.setenv("SIGNALBOX_TICKET", "a-ticket")
    monkeypatch.delenv("SIGNALBOX_USER", raising=False)
    with exchange_stage() as stage:
        stage.replies["exchanges"] = lambda _: [{"exchange": REALM, "live": LIVE}]
        yield stage


def refusal(*words: str) -> str:
    known = ["arvados", "bridge", "--aws", "--exchange", REALM, "--database", "host=/nowhere", "--url", URL]
    result = CliRunner().invoke(app, [*known, *words])
    assert isinstance(result.exception, RejectedError | UnavailableError), result.output
    return str(result.exception)


def test_a_bridge_publishes_as_a_user(stage):
    assert "--user must be given" in refusal()


def test_a_checkpoint_is_ignored_only_with_a_start(stage):
    assert "needs --from-log-id" in refusal("--user", "alice", "--ignore-checkpoint")


def test_an_exchange_that_is_not_declared_is_refused(stage):
    def refuse(command: dict[str, object]) -> object:
        raise Refusal(f"exchange {command['exchange']!r} does not exist: declare it first")

    stage.replies["exchanges"] = refuse

    assert "'xs_cluster.fifo' does not exist" in refusal("--user", "alice")


def test_an_exchange_that_is_not_live_is_refused(stage):
    stage.replies["exchanges"] = lambda _: [{"exchange": REALM, "live": None}]

    assert "is not live" in refusal("--user", "alice")


def test_a_database_that_is_away_at_the_start_ends_the_bridge(stage):
    assert "PostgreSQL" in refusal("--user", "alice")


def test_a_bridge_names_the_realm_and_the_stage_first(stage):
    known = ["arvados", "bridge", "--aws", "--exchange", REALM, "--database", "host=/nowhere", "--url", URL]

    result = CliRunner().invoke(app, [*known, "--user", "alice"])

    assert result.stderr.startswith(f"· log rows for {REALM} in stage signalbox in account 123456789012, as user alice")


def test_an_invalid_connection_string_is_refused(stage):
    assert "no connection string" in refusal("--user", "alice", "--database", "nonsense")


def test_logs_are_read_with_a_token_of_the_cluster(stage, monkeypatch):
    known = ("--user", "alice", "--arvados-api", "https://api.example.org")
    monkeypatch.delenv("ARVADOS_API_TOKEN", raising=False)
    assert "needs a token of the cluster in ARVADOS_API_TOKEN" in refusal(*known)

    monkeypatch.setenv("ARVADOS_API_TOKEN", "v2/zzzzz-gj3su-000000000000001/secret")
    assert "not 'everything'" in refusal(*known, "--logs", "everything")
    assert "PostgreSQL" in refusal(*known)


def test_with_a_url_the_stage_is_not_read(monkeypatch, tmp_path):
    monkeypatch.setenv("SIGNALBOX_TICKET", "a-ticket")
    monkeypatch.chdir(tmp_path)

    login = LiveLogin.of(URL, StageOptions(aws=True, stage="lab"), realm=REALM, user="cluster")

    assert login.url == URL
    assert (login.login.realm, login.login.authid, login.login.ticket) == (REALM, "cluster", "a-ticket")
