"""`signalbox arvados bridge`: publishes the log rows of an Arvados cluster to a realm."""

import os
import secrets
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from signalbox.cli.exchange.stage import UserOptions, exchanges, seconds
from signalbox.cli.live.stage import TICKET, USER, login_of
from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_json_line
from signalbox.cli.shared.signals import Ending
from signalbox.cli.shared.stage import StageOptions, say
from signalbox.clients.bridge.log_endpoint import LogEndpoint
from signalbox.clients.bridge.run import BridgeRun
from signalbox.clients.bridge.worker import Worker
from signalbox.errors import RejectedError
from signalbox.live.bridge.log_selection import SUBSCRIBED, ContainerSelection
from signalbox.live.bridge.service import ArvadosBridge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from signalbox.clients.bridge.realm import BridgedRealm
    from signalbox.clients.exchange.client import ExchangeClient
    from signalbox.clients.live.client import LiveClient
    from signalbox.clients.live.session import Login
    from signalbox.live.bridge.ports import BridgeRealm, LogTable

TOKEN = "ARVADOS_API_TOKEN"  # the name that Arvados' own programs read  # noqa: S105
TOPICS = ("record.", "container.", "bridge.")

app = CommandGroup("Arvados: publish the log rows of a cluster to a realm.")


@dataclass(frozen=True, slots=True)
class BridgeOptions(UserOptions):
    """The options that name a stage and the user of a bridge."""

    user: Annotated[
        str | None,
        typer.Option(
            help=f"User to publish as, and to join as with the ticket in {TICKET}.", metavar="NAME", envvar=USER
        ),
    ] = None


@app.command()
def bridge(
    *,
    database: Annotated[
        str,
        typer.Option(
            help="Connection string of the cluster's PostgreSQL database.",
            metavar="DSN",
            envvar="SIGNALBOX_DATABASE",
            show_envvar=True,
        ),
    ],
    realm: Annotated[str, typer.Option("--exchange", help="Live exchange to publish to.", metavar="EXCHANGE")],
    name: Annotated[str, typer.Option(help="Name of the bridge: its checkpoint is the topic bridge.NAME.")] = "arvados",
    from_log_id: Annotated[
        int | None,
        typer.Option(
            help="Id after which rows are published if there is no checkpoint; default: the newest id.",
            min=0,
            metavar="NUMBER",
        ),
    ] = None,
    ignore_checkpoint: Annotated[
        bool, typer.Option("--ignore-checkpoint", help="Start after --from-log-id in spite of a checkpoint.")
    ] = False,
    patience: Annotated[
        str, typer.Option(help="Maximum time that a row waits for earlier rows that are not committed.", metavar="TIME")
    ] = "30s",
    arvados_api: Annotated[
        str | None,
        typer.Option(
            help=f"URL of the cluster's API, from which logs of running containers are read with the token in {TOKEN}.",
            metavar="URL",
        ),
    ] = None,
    logs: Annotated[
        list[str],
        typer.Option(
            help="Containers whose logs are followed: `subscribed`, `all`, or a UUID of a container, a request, "
            "a project or a user. Repeatable.",
            metavar="WHICH",
        ),
    ] = ["subscribed"],  # noqa: B006 - Typer copies it
    url: Annotated[
        str | None,
        typer.Option(help="WebSocket URL of live; by default the stage's.", metavar="URL", envvar="SIGNALBOX_URL"),
    ] = None,
    options: BridgeOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print statistics as JSON, one line every 10 s.")] = False,
) -> None:
    """Publish each row of a cluster's table `logs` to a realm once and in order, until interrupted."""
    from signalbox.clients.bridge.postgres import PostgresLogs

    if ignore_checkpoint and from_log_id is None:
        raise RejectedError("--ignore-checkpoint needs --from-log-id, the row to start after")
    if options.user is None:
        raise RejectedError("--user must be given: a bridge publishes as a user of the stage")
    wait = timedelta(seconds=seconds(patience, "--patience") or 0)
    ending = Ending()

    def made(table: "LogTable", target: "BridgeRealm") -> ArvadosBridge:
        return ArvadosBridge(
            table,
            target,
            now=lambda: datetime.now(UTC),
            run=secrets.token_hex(4),
            patience=wait,
            start=from_log_id,
            ignores_checkpoint=ignore_checkpoint,
            is_ending=lambda: ending.is_due,
        )

    begins = f"log rows for {realm}"
    with ending.awaited(), exchanges(options, begins=begins) as client:
        login = LiveLogin.of(url, options, realm=realm, user=options.user)
        target, settings = _realm(client, realm, f"bridge.{name}", login)
        workers = [] if arvados_api is None else [_log_worker(arvados_api, logs, database, target)]
        if settings.get("arvados_api"):  # its users are those of the cluster
            workers.append(_permission_worker(client, realm, database))
        BridgeRun(
            partial(PostgresLogs.connect, database),
            target,
            realm,
            made,
            is_ending=lambda: ending.is_due,
            say=say,
            report=print_json_line if as_json else _print_progress,
            waiting=ending.waiting,
            workers=workers,
        ).run()
    ending.exit_if_interrupted()


def _permission_worker(client: "ExchangeClient", realm: str, database: str) -> Worker:
    from signalbox.clients.bridge.permissions import PermissionSync, PostgresPermissions

    sync = PermissionSync(client.ask, realm, partial(PostgresPermissions.connect, database), say)
    return Worker("permissions", sync.work, sync.figures, say)


def _log_worker(api: str, names: "Sequence[str]", database: str, realm: "BridgedRealm") -> Worker:
    """Return the worker for logs. Raises `RejectedError` without a token or with an unknown name."""
    from signalbox.clients.bridge.containers import PostgresContainers
    from signalbox.clients.bridge.log_realm import LogRealm, Subscriptions
    from signalbox.clients.bridge.log_relay import LogRelay, RelayConnections

    token = os.environ.get(TOKEN)
    if not token:
        raise RejectedError(f"--arvados-api needs a token of the cluster in {TOKEN}")

    @contextmanager
    def connections() -> "Iterator[RelayConnections]":
        with PostgresContainers.connect(database) as cluster, realm.live() as client:
            # Only administrators, and users with a grant, may see who is subscribed to which topic.
            yield RelayConnections(cluster, Subscriptions.follow(client) if SUBSCRIBED in names else None)

    relay = LogRelay(LogRealm(realm), LogEndpoint.of(api, token), ContainerSelection.parse(names), connections)
    return Worker("logs", relay.work, relay.figures, say)


def _realm(
    client: "ExchangeClient", realm: str, topic: str, login: "LiveLogin"
) -> "tuple[BridgedRealm, Mapping[str, Any]]":
    from botocore.exceptions import BotoCoreError, ClientError

    from signalbox.clients.bridge.realm import BridgedRealm, check_realm

    (document,) = client.exchanges(realm)
    order_by, age = check_realm(document, TOPICS)
    target = BridgedRealm(client, realm, topic, order_by, age, login.client, (BotoCoreError, ClientError))
    return target, document["live"]


@dataclass(frozen=True, slots=True)
class LiveLogin:
    """The URL and the login of a bridge's live sessions."""

    url: str
    login: "Login"

    @classmethod
    def of(cls, url: str | None, options: StageOptions, *, realm: str, user: str) -> "LiveLogin":
        """Return the login of a user, whose ticket is in the environment or typed in."""
        from signalbox.clients.deployment import AwsDeployment, missing_output

        # A user may not read the stack, so with a URL its outputs are not used.
        deployment = options.deployment() if url is None else AwsDeployment({}, "", "", websocket_url=url)
        if not deployment.websocket_url:
            raise RejectedError(missing_output(deployment.outputs, "LiveWebSocketUrl"))
        return cls(deployment.websocket_url, login_of(deployment, exchange=realm, user=user))

    @contextmanager
    def client(self) -> "Iterator[LiveClient]":
        """Provide a client that joins at its first request."""
        from signalbox.clients.live.client import LiveClient
        from signalbox.clients.web_socket import connector

        with LiveClient(connector(self.url), self.login) as client:
            yield client


def _print_progress(statistics: Mapping[str, object]) -> None:
    say(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in statistics.items() if name != "at"))
