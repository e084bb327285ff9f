"""`signalbox split start`, `run`, `tail` and `stop`: the user's sessions."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from signalbox.cli.shared.output import print_json, print_line
from signalbox.cli.shared.signals import Interrupted, interruptible
from signalbox.cli.shared.stage import OutputOptions, StageOptions, say
from signalbox.cli.splitting.handler.options import HandlerOptions
from signalbox.cli.splitting.held_sessions import ChildProcess, held_session
from signalbox.cli.splitting.mirrord_file import read_mirrord_file
from signalbox.cli.splitting.stage import (
    ConfiguredTarget,
    TargetName,
    control_of,
    default_owner,
    new_session_name,
    warn_not_split,
)
from signalbox.cli.splitting.tail import Tail, tail_config
from signalbox.clients.splitting.sessions import (
    POLL_SECONDS,
    SessionClient,
    SessionRequest,
    exclusive_config,
    mirror_config,
)
from signalbox.errors import RejectedError
from signalbox.filters.languages import Languages
from signalbox.splitting.control.protocol import READY
from signalbox.splitting.model.mirrord_target import configured_target
from signalbox.splitting.model.session_config import parse_mirrord_file
from signalbox.splitting.model.target import Target

if TYPE_CHECKING:
    from signalbox.clients.splitting.heartbeats import HeartbeatThread
    from signalbox.splitting.control.protocol import SessionStatus

DEFAULT_TIMEOUT_SECONDS = 300
EVERY_QUEUE = "*"
GONE = "gone"
EnvironmentNames = Annotated[
    list[str] | None,
    typer.Option(
        "--env", help="Variable of your environment that get_env may put into filters; repeatable.", metavar="NAME"
    ),
]
NAMING = "add `envVar` to its `nameSource` in the registry, apply it, and start again when the split is over"


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options that name a session, its target and its owner."""

    target: ConfiguredTarget = None
    session: Annotated[
        str | None, typer.Option(help="Name of the session; by default your name and a random part.")
    ] = None
    owner: Annotated[str | None, typer.Option(help="Owner of the session; by default you at this machine.")] = None
    timeout: Annotated[int, typer.Option(help="Seconds to wait for the session to be ready.", min=1)] = (
        DEFAULT_TIMEOUT_SECONDS
    )

    def request(self, config: object, *, since: str | None = None) -> SessionRequest:
        """Return a validated request; its problems are reported before anything is sent."""
        from signalbox.cli.exchange.stage import seconds

        found = Target.parse(self.target) if self.target else configured_target(config)
        if found is None:
            raise RejectedError("give --target, or `target` in the mirrord.json: the deployed consumer of the session")
        parsed = parse_mirrord_file(config, Languages())
        warn_not_split(parsed.other_brokers)
        name, since_seconds = self.session or new_session_name(), seconds(since, "--since")
        return SessionRequest(found.with_container, name, self.owner or default_owner(), config, since_seconds)


@dataclass(frozen=True, slots=True)
class ConfigOptions:
    """The options that say which messages a session takes."""

    config: Annotated[
        Path | None,
        typer.Option(help="A mirrord.json (or .yaml, .toml) with `feature.split_queues`; - for standard input."),
    ] = None
    env: EnvironmentNames = None
    exclusive: Annotated[
        bool, typer.Option("--exclusive", help="Take every message of all queues; the deployed consumer gets none.")
    ] = False
    since: Annotated[
        str | None,
        typer.Option(
            help="Receive the matching messages that were kept in this time first, such as 2h.", metavar="TIME"
        ),
    ] = None

    def request(self, options: SessionOptions) -> SessionRequest:
        """Return a validated request for the messages of a mirrord.json, or for all queues as a whole."""
        if (self.config is None) != self.exclusive:
            raise RejectedError(
                "give either --config, for a mirrord.json, or --exclusive, for every message of all queues"
            )
        document = exclusive_config() if self.config is None else read_mirrord_file(self.config, self.env or ())
        return options.request(document, since=self.since)


@contextmanager
def held(
    request: SessionRequest, place: StageOptions, *, timeout: timedelta
) -> "Iterator[tuple[SessionClient, SessionStatus]]":
    """Hold a session during the block; an interruption ends the command with its status."""
    try:
        with (
            interruptible(),
            session_client(request, place) as client,
            held_session(client, timeout=timeout) as state,
        ):
            yield client, state
    except Interrupted as interruption:
        raise typer.Exit(interruption.status) from interruption


@contextmanager
def session_client(request: SessionRequest, place: StageOptions) -> Iterator[SessionClient]:
    """Yield a client for a session; name its stage first, since a session changes a deployed consumer."""
    deployment = place.deployment()
    say(f"session {request.session!r} of {request.target} in {deployment.place}")
    with control_of(deployment) as client:
        yield SessionClient(client, request, on_progress=_say_phase, on_wait=_say_wait)


def _say_phase(state: "SessionStatus") -> None:
    if not state.has_ended:
        say(f"session {state.session!r} is {state.phase}")
    if state.replayed and state.phase != READY:
        say(f"{state.replayed} kept messages so far")
    if state.phase == READY:
        for queue in state.queues:
            say(f"{queue.queue_id}: {queue.temporary} instead of {queue.original}")
        for note in state.notes:
            say(note)


def _say_wait(text: str) -> None:
    say(f"not yet: {text}")


def start(
    *,
    options: SessionOptions,
    messages: ConfigOptions,
    hold: Annotated[
        bool, typer.Option(help="Keep the session until this command is interrupted; otherwise exit when it is ready.")
    ] = True,
    place: OutputOptions,
) -> None:
    """Start a session, print the environment for its consumer, and keep it alive until interrupted."""
    from signalbox.clients.splitting.heartbeats import HeartbeatThread

    request, timeout = messages.request(options), timedelta(seconds=options.timeout)
    if hold:
        with held(request, place, timeout=timeout) as (client, state):
            _print_session(state, as_json=place.as_json)
            with HeartbeatThread(client, say).running() as heartbeat:
                _wait(heartbeat)
        return
    try:
        with interruptible(), session_client(request, place) as client:
            _print_session(client.start(timeout=timeout), as_json=place.as_json)
    except Interrupted as interruption:
        raise typer.Exit(interruption.status) from interruption


def _print_session(state: "SessionStatus", *, as_json: bool) -> None:
    if as_json:
        print_json(state.document)
    for name, value in () if as_json else state.environment.items():
        print_line(f"{name}={shlex.quote(value)}")
    sys.stdout.flush()


def _wait(heartbeat: "HeartbeatThread") -> None:
    try:
        say("Ctrl-C ends it")
        heartbeat.ended.wait()
    except Interrupted:
        return  # an interruption is the normal end
    heartbeat.check()


def run(
    *,
    command: Annotated[list[str] | None, typer.Argument(help="The command and its arguments, after --.")] = None,
    options: SessionOptions,
    messages: ConfigOptions,
    handler: HandlerOptions,
    place: StageOptions,
) -> None:
    """Run a command or a Lambda handler in a session that starts and ends with it."""
    handler.check(has_command=bool(command))
    request, timeout = messages.request(options), timedelta(seconds=options.timeout)
    if command:
        _run_command(request, command, place, timeout=timeout)
    from signalbox.cli.splitting.handler.command import run_handler

    run_handler(request, handler, place, timeout=timeout)


def _run_command(request: SessionRequest, command: list[str], place: StageOptions, *, timeout: timedelta) -> NoReturn:
    from signalbox.clients.splitting.heartbeats import HeartbeatThread

    if shutil.which(command[0]) is None:  # checked before the deployed consumer is switched
        raise RejectedError(f"cannot run {command[0]!r}: there is no such program")
    environment = place.deployment().program_environment(os.environ)
    with held(request, place, timeout=timeout) as (client, state):
        for queue in _unnamed(state):
            say(f"queue {queue!r}: no variable has its name, so the command cannot find it; {NAMING}")
        running = ChildProcess(command, {**environment, **state.environment})
        with HeartbeatThread(client, say, on_end=running.end).running() as heartbeat:
            status = running.run()
        heartbeat.check()
    raise typer.Exit(status)


def _unnamed(state: "SessionStatus") -> list[str]:
    """Return the ids of the queues whose names are in no variable of the command."""
    texts = " ".join(state.environment.values())
    return [one.queue_id for one in state.queues if one.temporary not in texts]


def stop(
    *,
    session: Annotated[str, typer.Argument(help="Name of the session.")],
    target: TargetName,
    wait: Annotated[bool, typer.Option("--wait", help="Exit only when the session is gone.")] = False,
    place: OutputOptions,
) -> None:
    """End a session of any owner; the session's unconsumed messages are matched again."""
    import time

    request = SessionRequest(str(Target.parse(target)), session, default_owner(), None)
    with session_client(request, place) as client:
        document = client.stop().document
        while wait and session in client.known():
            time.sleep(POLL_SECONDS)
    phase = GONE if wait else document["phase"]
    if place.as_json:
        print_json({**document, "phase": phase})
    else:
        print_line(f"{session}  {phase}")


def tail(
    *,
    options: SessionOptions,
    queue: Annotated[str, typer.Option(help="Queue id; all queues if not given.", metavar="ID")] = EVERY_QUEUE,
    message_filter: Annotated[
        list[str] | None,
        typer.Option("--filter", help="Message attribute and regular expression; repeatable.", metavar="NAME=REGEX"),
    ] = None,
    jq_filter: Annotated[str | None, typer.Option("--jq", help="A jq program that outputs true for a message.")] = None,
    config: Annotated[Path | None, typer.Option(help="A mirrord.json, in place of --filter and --jq.")] = None,
    env: EnvironmentNames = None,
    count: Annotated[int | None, typer.Option(help="Number of messages after which to exit.", min=1)] = None,
    place: OutputOptions,
) -> None:
    """Print matching messages as they arrive without taking them, by a session that receives copies."""
    from signalbox.clients.splitting.heartbeats import HeartbeatThread

    document = (
        tail_config(queue, message_filter or [], jq_filter)
        if config is None
        else mirror_config(read_mirrord_file(config, env or ()))
    )
    request = options.request(document)
    tailed = Tail(place.deployment().session(), as_json=place.as_json)
    with held(request, place, timeout=timedelta(seconds=options.timeout)) as (client, state):
        with HeartbeatThread(client, say).running() as heartbeat:
            tailed.follow(state.queues, until=heartbeat.ended, count=count)
        heartbeat.check()
