"""The benchmark of delivery next to RabbitMQ and crossbar: `python -m benchmarks.races`."""

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path

from benchmarks.parts.live import crossbar_side
from benchmarks.parts.races import amqp_programs as amqp
from benchmarks.parts.races.accounts import Account
from benchmarks.parts.races.amqp_programs import AmqpReceiver, AmqpSender, QueueSetting
from benchmarks.parts.races.rounds import EVENTS, TOPICS, Kind, Plan, race
from benchmarks.parts.races.sides import Setting
from benchmarks.parts.races.wamp import (
    AcknowledgedSender,
    HistoryReceiver,
    QueueSender,
    UnacknowledgedSender,
    WampReceiver,
    live_client,
)
from benchmarks.shared.command import parser, report
from benchmarks.shared.machine import Machine, this_machine
from benchmarks.shared.report import Table
from benchmarks.shared.stage import FOLDER, function_processes, running_stage
from signalbox.clients.live.session import Login
from signalbox.live.wamp.options import AfterSequence
from signalbox.local.progress import step
from tests import rabbitmq

OURS, RABBITMQ, CROSSBAR = "Signalbox", "RabbitMQ", "crossbar"
ALL_RACES = 10_000
SUBSCRIBERS = 50
"""Of a round, at most."""
SOON_SECONDS = 60.0
"""RabbitMQ and crossbar deliver within milliseconds, or not at all."""
REDELIVERY_SECONDS = 150.0
"""A message of a killed function is visible again after 30 s on the local stage."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The account of a round."""

    setting: str
    kind: str
    number: int
    races: int
    account: Account


@dataclass(frozen=True, slots=True)
class Results:
    """All rounds of a run, and of the runs that it continues."""

    machine: Machine
    outcomes: Sequence[Outcome] = ()


def main(arguments: Sequence[str]) -> int:
    """Run the races that have no result yet, and print the table."""
    options = parser("races", __doc__, parts=tuple(BROKERS), page="docs/live.md")
    text = f"races of each setting, at most {SUBSCRIBERS * TOPICS} at a time (default: %(default)s)"
    options.add_argument("--races", type=int, default=ALL_RACES, help=text)
    options.add_argument("--seed", type=int, default=1, help="a run continues the one with the same seed (default: 1)")
    parsed = options.parse_args(arguments)
    return report(parsed, lambda: _measured(parsed), tables=tables, targets=targets)


def _measured(options: argparse.Namespace) -> Results:
    upstream = f"crossbar {crossbar_side.VERSION}, RabbitMQ of Debian"
    plan = Plan.of(seed=options.seed, races=options.races, most_subscribers=SUBSCRIBERS)
    machine, outcomes = this_machine("races", upstream=upstream), _Outcomes.of(plan)
    for broker in options.only or BROKERS:
        with closing(BROKERS[broker](plan, options.port)) as settings:
            for setting in settings:
                with step(setting.title) as say:
                    for number in outcomes.rounds_left(setting):
                        say(f"round {number} of {plan.rounds}, {plan.kind(number)}")
                        account = race(setting, plan, number)
                        outcomes.add(Outcome(setting.title, plan.kind(number), number, plan.races, account))
    return Results(machine, outcomes.all)


@dataclass(frozen=True, slots=True)
class _Outcomes:
    """The outcomes of a plan, kept in a file, so that a run continues the one before."""

    plan: Plan
    path: Path
    all: list[Outcome]

    @classmethod
    def of(cls, plan: Plan) -> "_Outcomes":
        path = FOLDER / "races" / f"{plan.seed}-{plan.subscribers}.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return cls(plan, path, [Outcome(**{**one, "account": Account(**one["account"])}) for one in lines])

    def rounds_left(self, setting: Setting) -> Sequence[int]:
        done = {one.number for one in self.all if one.setting == setting.title}
        return [number for number in range(self.plan.rounds) if number not in done]

    def add(self, outcome: Outcome) -> None:
        self.all.append(outcome)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


def _signalbox(_: Plan, port: int) -> Generator[Setting, None, None]:
    """Yield the settings of Signalbox on a stage, whose function instances are killed all at once."""
    with running_stage(port=port) as stage:
        users = {
            user["role"]: Login(stage.local["realm"], user["name"], user["ticket"])
            for user in stage.local["live_users"]
        }
        url = stage.local["websocket_url"]
        defaults = Setting(
            broker=OURS,
            name="defaults",
            from_first=False,
            patience_seconds=REDELIVERY_SECONDS,
            receiver_url=url,
            sender_url=url,
            receiver=lambda url, _, topics: WampReceiver(live_client(url, users["subscriber"]), topics),
            sender=lambda url: AcknowledgedSender(live_client(url, users["source"])),
            restart=_kill_functions,
        )
        yield defaults
        yield replace(
            defaults,
            name="history, SQS",
            from_first=True,
            sender_url=stage.local["endpoint_url"],
            receiver=lambda url, _, topics: WampReceiver(
                live_client(url, users["subscriber"]), topics, AfterSequence(0)
            ),
            sender=lambda url: QueueSender.of(stage.local, url),
        )


def _kill_functions() -> None:
    for process in function_processes():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _crossbar(plan: Plan, _: int) -> Generator[Setting, None, None]:
    """Yield the settings of crossbar."""
    crossbar_side.install()
    login = Login(crossbar_side.REALM)
    with crossbar_side.running() as node:
        defaults = Setting(
            broker=CROSSBAR,
            name="defaults",
            from_first=False,
            patience_seconds=SOON_SECONDS,
            receiver_url=node.url,
            sender_url=node.url,
            receiver=lambda url, _, topics: WampReceiver(live_client(url, login), topics),
            sender=lambda url: UnacknowledgedSender(url, login),
            restart=lambda: _restart(node),
        )
        yield defaults
    rounds = [plan.topics(number) for number in range(plan.rounds)]
    history = [topic for topics in rounds for own in topics.values() for topic in own]
    with crossbar_side.running(history=history) as node:
        yield replace(
            defaults,
            name="event history, acknowledged",
            from_first=True,
            receiver_url=node.url,
            sender_url=node.url,
            receiver=lambda url, _, topics: HistoryReceiver(live_client(url, login), topics),
            sender=lambda url: AcknowledgedSender(live_client(url, login)),
            restart=lambda: _restart(node),
        )


def _rabbitmq(*_: object) -> Generator[Setting, None, None]:
    """Yield the settings of RabbitMQ, if it is installed."""
    if not rabbitmq.is_installed():
        return
    with tempfile.TemporaryDirectory() as folder, rabbitmq.running(Path(folder)) as server:
        for name, queue in (("defaults", amqp.EXCLUSIVE), ("quorum queues", amqp.QUORUM), ("streams", amqp.STREAM)):
            yield _rabbitmq_setting(server, name, queue)


def _rabbitmq_setting(server: rabbitmq.RabbitMq, name: str, queue: QueueSetting) -> Setting:
    def prepare(topics: Mapping[str, Sequence[str]]) -> None:
        if queue.is_stream:
            with amqp.connection(server.url) as connection:
                for subscriber, own in topics.items():
                    amqp.declare(connection.channel(), queue, subscriber, own)

    return Setting(
        broker=RABBITMQ,
        name=name,
        from_first=queue.is_stream,
        patience_seconds=SOON_SECONDS,
        receiver_url=server.url,
        sender_url=server.url,
        receiver=lambda url, subscriber, topics: AmqpReceiver(url, subscriber, topics, queue),
        sender=lambda url: AmqpSender(url, is_confirmed=queue.arguments is not None),
        restart=lambda: _restart(server),
        prepare=prepare,
    )


def _restart(server: rabbitmq.RabbitMq | crossbar_side.Crossbar) -> None:
    server.kill()
    server.start()


BROKERS: Mapping[str, Callable[[Plan, int], Generator[Setting, None, None]]] = {
    OURS: _signalbox,
    RABBITMQ: _rabbitmq,
    CROSSBAR: _crossbar,
}


def tables(results: Results) -> Iterator[Table]:
    """Yield the table."""
    kinds = [str(kind) for kind in Kind]
    columns = ["broker, setting", "races", "events", *(f"lost: {kind}" for kind in kinds)]
    columns += ["lost", "twice by publication id", "out of order", "unnoticed gaps"]
    rows = []
    for setting in dict.fromkeys(one.setting for one in results.outcomes):
        own = [one for one in results.outcomes if one.setting == setting]
        lost = [_lost([one for one in own if one.kind == kind]) for kind in kinds]
        total, count = _total(own), sum(one.races for one in own)
        sums = (total.lost, total.twice, total.out_of_order, total.unnoticed)
        rows.append([setting, f"{count:,}", f"{total.wanted:,}", *lost, *(f"{one:,}" for one in sums)])
    note = f"A race is one subscriber's topic with {EVENTS} events."
    yield Table("Delivery side by side", columns, rows, note)


def _lost(outcomes: Sequence[Outcome]) -> str:
    """Return the number of lost events, or a dash without a measurement."""
    return f"{_total(outcomes).lost:,}" if outcomes else "-"


def _total(outcomes: Iterable[Outcome]) -> Account:
    return reduce(Account.plus, (one.account for one in outcomes), Account())


def targets(results: Results) -> Iterator[tuple[str, bool]]:
    """Yield the promise of live's page, and whether the run kept it."""
    ours = _total(one for one in results.outcomes if one.setting.startswith(OURS))
    if ours.wanted:
        found = (ours.lost, ours.twice, ours.out_of_order, ours.unnoticed)
        yield f"nothing lost, twice, out of order or missing unnoticed {found}", not any(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
