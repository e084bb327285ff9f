"""The removal of a run's resources, by their names: after each run, on request, and of interrupted earlier runs."""

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.aws.exchange.users import ExchangeUsers
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.splitting.splits import DynamoRegistries
from signalbox.cli.verify.live import GRANTED, reading_grant
from signalbox.clients.exchange.client import stage_client
from signalbox.errors import RejectedError
from signalbox.exchange.model.names import dead_letter_name
from signalbox.flows.consumer import DeployedConsumer, wait_until
from signalbox.flows.splitting import control_of, splits
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import parse_user_name
from signalbox.splitting.model.target import Target
from signalbox.verify.names import MARK, RunId, RunNames, is_left_over, run_of
from signalbox.verify.patience import SPLIT_END_SECONDS
from signalbox.verify.report import masked

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

    from signalbox.clients.deployment import Deployment


def clean(deployment: "Deployment", run: RunId) -> list[str]:
    """Delete everything that a run made; return the resources that could not be deleted, with the reasons."""
    names, left = RunNames(run), []
    for what, remove in _removals(names, deployment.capabilities):
        try:
            remove(deployment, names)
        except Exception as error:  # noqa: BLE001 - the other resources go nevertheless, and this one is reported
            left.append(masked(f"{what}: {type(error).__name__}: {error}"))
    return left


def left_over_runs(deployment: "Deployment") -> list[RunId]:
    """Return the runs whose resources exist, and that cannot be in progress any more."""
    sqs, prefixes, users = deployment.session().client("sqs"), [f"demo-{MARK}"], list[str]()
    if "exchange" in deployment.capabilities:
        prefix = deployment.outputs["ExchangePrefix"]
        prefixes += [f"{prefix}xs_{MARK}", f"{prefix}q_{MARK}"]
        users = [str(user.name) for user in _users(deployment).every()]
    queues = (name for beginning in prefixes for name in _queues(sqs, beginning))
    found = {run for name in (*queues, *users) if (run := run_of(name)) is not None}
    return sorted(run for run in found if is_left_over(run, now=datetime.now(UTC)))


Remove = Callable[["Deployment", RunNames], None]


def _removals(names: RunNames, capabilities: Collection[str]) -> Iterator[tuple[str, Remove]]:
    """Yield the removals in order: the queues of exchange and consumer, by which leftovers are found, late."""
    if "splitting" in capabilities:
        yield "sessions", _end_sessions
        yield f"registry of {names.consumer}", _remove_registry
        yield f"consumer {names.consumer}", _remove_consumer
    if "exchange" in capabilities:
        yield "exchanges and queues", _remove_exchanges
        yield f"users {names.user} and {names.reader}", _remove_users
    yield "other queues", _remove_queues


def _target(names: RunNames) -> str:
    return f"lambda/{names.consumer}"


def _end_sessions(deployment: "Deployment", names: RunNames) -> None:
    target, control = _target(names), control_of(deployment)
    for session in (session for split in splits(control, target) for session in split.get("sessions", ())):
        with suppress(RejectedError):  # it has ended meanwhile
            control.ask("stop", {"target": target, "session": session["session"]})
    wait_until(lambda: not splits(control, target), "the split has ended", seconds=SPLIT_END_SECONDS)


def _remove_registry(deployment: "Deployment", names: RunNames) -> None:
    table = DynamoTable(deployment.session().client("dynamodb"), deployment.outputs["SplitTable"])
    DynamoRegistries(table).remove(Target.parse(_target(names)))


def _remove_consumer(deployment: "Deployment", names: RunNames) -> None:
    DeployedConsumer(deployment.session(), names.consumer, {}).remove()


def _remove_exchanges(deployment: "Deployment", names: RunNames) -> None:
    sqs = deployment.session().client("sqs")
    client = stage_client(deployment.session().client("sqs"), deployment.outputs)
    for pattern in GRANTED if "live" in deployment.capabilities else ():
        with suppress(RejectedError):  # the realm was not declared, or is deleted
            client.ask("ungrant", reading_grant(names, pattern))
    for queue in names.queues:
        client.delete_queue(queue)
    for exchange in names.exchanges:
        client.delete_exchange(exchange, force=True)
    stage_names = client.names
    for name in (*names.queues, *names.exchanges):
        # Dead letters outlive their queue.
        _delete(sqs, dead_letter_name(stage_names.queue(name)))


def _remove_users(deployment: "Deployment", names: RunNames) -> None:
    identities, records = ExchangeUsers.of(deployment.session(), deployment.outputs), _users(deployment)
    client = stage_client(deployment.session().client("sqs"), deployment.outputs)
    for name in map(parse_user_name, (names.user, names.reader)):
        identities.remove(name)
        records.remove(name)
        client.ask("forget_user", {"user": name})


def _remove_queues(deployment: "Deployment", names: RunNames) -> None:
    sqs = deployment.session().client("sqs")
    for name in (names.probe_queue, names.strange_queue):
        _delete(sqs, QueueName(name))
    if "rendezvous" in deployment.capabilities:
        for name in _queues(sqs, deployment.outputs["ClientQueuePrefix"] + names.run):
            _delete(sqs, QueueName(name))


def _users(deployment: "Deployment") -> DynamoUsers:
    return DynamoUsers(DynamoTable(deployment.session().client("dynamodb"), deployment.outputs["ExchangeTable"]))


def _queues(sqs: "SQSClient", prefix: str) -> list[str]:
    pages = sqs.get_paginator("list_queues").paginate(QueueNamePrefix=prefix)
    return [url.rpartition("/")[2] for page in pages for url in page.get("QueueUrls", ())]


def _delete(sqs: "SQSClient", name: QueueName) -> None:
    with suppress(sqs.exceptions.QueueDoesNotExist):
        sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])
