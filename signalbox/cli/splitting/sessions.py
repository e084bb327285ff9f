"""`signalbox split start`, `run`, `tail` and `stop`: sessions of one's own."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.shared.files import read_json
from signalbox.cli.shared.output import print_json, print_line
from signalbox.cli.shared.stage import Aws, Json, Stage, say
from signalbox.cli.splitting.stage import (
    Owner,
    SessionName,
    TargetName,
    control_of,
    default_owner,
    new_session_name,
    say_what_is_not_split,
)
from signalbox.clients.splitting.sessions import SECONDS_BETWEEN_LOOKS, mirrored
from signalbox.splitting.control.protocol import GONE, READY

if TYPE_CHECKING:
    from signalbox.cli.splitting.held_sessions import Pulse
    from signalbox.clients.splitting.sessions import SessionClient
    from signalbox.splitting.control.protocol import SessionState

DEFAULT_TIMEOUT_SECONDS = 300
EVERY_QUEUE = "*"

ConfigFile = Annotated[Path, typer.Option("--config", help="A mirrord.json with `feature.split_queues`; - is allowed.")]
Timeout = Annotated[int, typer.Option(help="Seconds after which a session that is not ready is given up.", min=1)]


@dataclass(frozen=True, slots=True)
class Wish:
    """The session that a command is about."""

    target: str
    session: str
    owner: str
    config: object


def wish(*, target: str, session: str | None, owner: str | None, config: object) -> Wish:
    """Return a checked wish: what is wrong with it is told before anything is asked for."""
    from signalbox.filters.languages import Languages
    from signalbox.splitting.model.session_config import parse_mirrord_file
    from signalbox.splitting.model.target import Target

    name = str(Target.parse(target))
    say_what_is_not_split(parse_mirrord_file(config, Languages()).other_brokers)
    return Wish(name, session or new_session_name(), owner or default_owner(), config)


@contextmanager
def asking(wanted: Wish, *, aws: bool, stage: str) -> "Iterator[SessionClient]":
    """Give a client for a session."""
    from signalbox.cli.shared.deployment import find_deployment
    from signalbox.clients.splitting.sessions import SessionClient, SessionRequest

    with control_of(find_deployment(aws=aws, stage=stage)) as client:
        request = SessionRequest(wanted.target, wanted.session, wanted.owner, wanted.config)
        yield SessionClient(client, request, on_progress=_say_phase, on_wait=_say_wait)


def _say_phase(state: "SessionState") -> None:
    if not state.has_ended:
        say(f"session {state.session!r} is {state.phase}")
    if state.phase == READY:
        for queue in state.queues:
            say(f"{queue.queue_id}: {queue.temporary} instead of {queue.original}")
        for note in state.notes:
            say(note)


def _say_wait(text: str) -> None:
    say(f"not yet: {text}")


def start(
    *,
    target: TargetName,
    config: ConfigFile,
    session: SessionName = None,
    owner: Owner = None,
    timeout: Timeout = DEFAULT_TIMEOUT_SECONDS,
    hold: Annotated[
        bool, typer.Option(help="Keep the session until this command is interrupted; else start it and leave.")
    ] = True,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Start a session, print the environment for its consumer, and keep it alive until interrupted."""
    from signalbox.cli.shared.signals import Interrupted, interruptible
    from signalbox.cli.splitting.held_sessions import Pulse, held

    wanted = wish(target=target, session=session, owner=owner, config=read_json(config))
    try:
        with interruptible(), asking(wanted, aws=aws, stage=stage) as client:
            if not hold:
                _print_session(client.start(timeout=timedelta(seconds=timeout)), as_json=as_json)
                return
            with held(client, timeout=timedelta(seconds=timeout)) as state:
                _print_session(state, as_json=as_json)
                say("Ctrl-C ends it")
                with Pulse(client).beating() as pulse:
                    _wait(pulse)
    except Interrupted as interruption:
        raise typer.Exit(interruption.status) from interruption


def _print_session(state: "SessionState", *, as_json: bool) -> None:
    if as_json:
        print_json(state.document)
    for name, value in () if as_json else state.environment.items():
        print_line(f"{name}={shlex.quote(value)}")
    sys.stdout.flush()


def _wait(pulse: "Pulse") -> None:
    from signalbox.cli.shared.signals import Interrupted

    try:
        pulse.ended.wait()
    except Interrupted:
        return  # that is how such a session is to end
    pulse.check()


def run(
    *,
    command: Annotated[list[str], typer.Argument(help="The command and its arguments, after --.")],
    target: TargetName,
    config: ConfigFile,
    session: SessionName = None,
    owner: Owner = None,
    timeout: Timeout = DEFAULT_TIMEOUT_SECONDS,
    aws: Aws = False,
    stage: Stage = "signalbox",
) -> None:
    """Run a command with a session of its own: it starts before, and ends whenever and however the command does."""
    from signalbox.cli.shared.signals import Interrupted, interruptible
    from signalbox.cli.splitting.held_sessions import Command, Pulse, held

    wanted = wish(target=target, session=session, owner=owner, config=read_json(config))
    try:
        with (
            interruptible(),
            asking(wanted, aws=aws, stage=stage) as client,
            held(client, timeout=timedelta(seconds=timeout)) as state,
        ):
            running = Command(command, state.environment)
            with Pulse(client, on_end=running.end).beating() as pulse:
                status = running.run()
            pulse.check()
    except Interrupted as interruption:
        raise typer.Exit(interruption.status) from interruption
    raise typer.Exit(status)


def stop(
    *,
    session: Annotated[str, typer.Argument(help="Name of the session.")],
    target: TargetName,
    wait: Annotated[bool, typer.Option("--wait", help="Leave only when the session is gone.")] = False,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """End a session, whosever it is; what it did not consume goes where it belongs without it."""
    import time

    from signalbox.splitting.model.target import Target

    wanted = Wish(str(Target.parse(target)), session, default_owner(), None)
    with asking(wanted, aws=aws, stage=stage) as client:
        state = client.stop()
        while wait and state.phase != GONE:
            time.sleep(SECONDS_BETWEEN_LOOKS)
            state = client.beat()  # what is ending goes on ending
    if as_json:
        print_json(state.document)
    else:
        print_line(f"{state.session}  {state.phase}")


def tail(
    *,
    target: TargetName,
    queue: Annotated[str, typer.Option(help="Queue id; all queues if not given.", metavar="ID")] = EVERY_QUEUE,
    message_filter: Annotated[
        list[str] | None,
        typer.Option("--filter", help="Message attribute and regular expression; repeatable.", metavar="NAME=REGEX"),
    ] = None,
    jq_filter: Annotated[str | None, typer.Option("--jq", help="A jq program that says true of a message.")] = None,
    config: Annotated[Path | None, typer.Option(help="A mirrord.json, whose filters count instead.")] = None,
    count: Annotated[int | None, typer.Option(help="Messages after which to leave.", min=1)] = None,
    session: SessionName = None,
    owner: Owner = None,
    timeout: Timeout = DEFAULT_TIMEOUT_SECONDS,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Print matching messages as they come, without taking them: a session that gets copies."""
    from signalbox.cli.shared.deployment import find_deployment
    from signalbox.cli.shared.signals import Interrupted, interruptible
    from signalbox.cli.splitting.held_sessions import Pulse, held
    from signalbox.cli.splitting.tail import Tail, asked_for

    document = asked_for(queue, message_filter or [], jq_filter) if config is None else mirrored(read_json(config))
    wanted = wish(target=target, session=session, owner=owner, config=document)
    tailed = Tail(find_deployment(aws=aws, stage=stage).session(), as_json=as_json)
    try:
        with (
            interruptible(),
            asking(wanted, aws=aws, stage=stage) as client,
            held(client, timeout=timedelta(seconds=timeout)) as state,
        ):
            with Pulse(client).beating() as pulse:
                tailed.follow(state.queues, until=pulse.ended, count=count)
            pulse.check()
    except Interrupted as interruption:
        raise typer.Exit(interruption.status) from interruption
