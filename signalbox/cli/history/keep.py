"""`signalbox keep`: for how long the messages of a queue are kept, and who may read them."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import typer

from signalbox.aws.kept.readers import IamReaders
from signalbox.cli.exchange.stage import duration_text, seconds
from signalbox.cli.shared.confirmation import Yes, confirm
from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_fields, print_json, print_list
from signalbox.cli.shared.stage import OutputOptions, local_time, output, say
from signalbox.errors import RejectedError
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.kept.settings import KeepSetting, keep_time, readable
from signalbox.nearest import suggestion
from signalbox.queues import QueueName, parse_any_queue_name
from signalbox.sarracenia.rights.names import sqs_name

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

    from signalbox.aws.exchange.exchanges import DynamoQueues
    from signalbox.aws.kept.settings import DynamoKeepSettings
    from signalbox.aws.shared.dynamodb import DynamoTable
    from signalbox.clients.deployment import Deployment

DECLARED = "q_"
COLUMNS = ("queue", "kept for", "readable by", "set")
BEING_DELETED = "being deleted"
NOT_NEW_ONES = "no new ones"

app = CommandGroup("Keep messages that pass a split or an exchange for a set time.")

Queue = Annotated[
    str, typer.Argument(help="A queue that is split, by its SQS name, or a declared queue such as q_ann.")
]


@app.command(name="set")
def set_queue(
    *,
    name: Queue,
    keep_for: Annotated[str, typer.Option("--for", help="Time from 5m to 14d, such as 24h.", metavar="TIME")],
    readable_by: Annotated[
        list[str] | None,
        typer.Option(
            "--readable-by",
            help="IAM user or role that may read the messages: NAME, user/NAME, role/NAME or an ARN; repeatable. "
            "Default: the existing readers, otherwise you.",
            metavar="NAME",
        ),
    ] = None,
    options: OutputOptions,
) -> None:
    """Keep the messages of a queue from now on, and name who may read them."""
    time = keep_time(seconds(keep_for, "--for") or 0)
    kept = KeptQueues(options.deployment())
    before = kept.find(name)
    declared = before.declared if before and before.declared else kept.declared(name)
    queue = kept.existing(declared or name)
    readers = kept.readers(readable_by, before)
    kept.store(KeepSetting(queue, time, datetime.now(UTC), readers, declared=declared), before)
    result = kept.apply(queue)
    _print(result | {"readable_by": sorted(readers.values())}, as_json=options.as_json)
    if declared is None and result["target"] is None:
        say(f"queue {name!r} is not split: its messages pass Signalbox, and are kept, only while it is")
    say(f"in {kept.deployment.place}")


@app.command(name="list")
def list_queues(*, options: OutputOptions) -> None:
    """List the queues that are kept, for how long, and who may read their messages."""
    kept = KeptQueues(options.deployment())
    found = [(one, kept.is_active(one)) for one in kept.settings.every()]
    documents = [_document(one, is_active=is_active) for one, is_active in found]
    rows = (_row(one, is_active=is_active) for one, is_active in found)
    print_list(documents, COLUMNS, rows, none="no queue is kept", as_json=options.as_json)
    for one, is_active in found:
        if one.keep_for is not None and one.declared is not None and not is_active:
            again = f"`{shlex.join(['signalbox', 'keep', 'set', one.declared])}` keeps a new one's messages"
            say(f"queue {one.declared!r} was deleted since: {again}")


@app.command()
def remove(*, name: Queue, yes: Yes = False, options: OutputOptions) -> None:
    """Stop keeping messages of a queue and delete the kept ones; asks first."""
    kept = KeptQueues(options.deployment())
    before = kept.find(name)
    if before is None:
        known = [known for one in kept.settings.every() for known in filter(None, (one.queue, one.declared))]
        raise RejectedError(f"queue {name!r} is not kept{suggestion(name, known)}")
    confirm(f"Delete all kept messages of queue {name!r} of {kept.deployment.place}?", yes=yes, as_json=options.as_json)
    kept.store(KeepSetting(before.queue, None, datetime.now(UTC), {}, declared=before.declared), before)
    deleted = 0
    while not (result := kept.apply(before.queue))["complete"]:
        deleted += result["deleted"]
        say(f"{deleted} objects deleted so far")
    _print(result | {"deleted": deleted + result["deleted"]}, as_json=options.as_json)
    say(f"in {kept.deployment.place}")


@dataclass(frozen=True)
class KeptQueues:
    """The settings of a stage, which the caller's own credentials write: that permission is the right to set them."""

    deployment: "Deployment"

    @cached_property
    def settings(self) -> "DynamoKeepSettings":
        """The settings by queue."""
        from signalbox.aws.kept.settings import DynamoKeepSettings

        return DynamoKeepSettings(self._table("SplitTable"))

    @cached_property
    def queues(self) -> "DynamoQueues":
        """The records of declared queues, with the mark by which the router keeps their messages."""
        from signalbox.aws.exchange.exchanges import DynamoQueues

        return DynamoQueues(self._table("ExchangeTable"))

    def declared(self, name: str) -> str | None:
        """Return the name of a declared queue, or None for the name of a queue in SQS."""
        return name if name.startswith(DECLARED) else None

    def sqs_name(self, name: str) -> QueueName:
        """Return the name in SQS of a queue."""
        if self.declared(name):
            return sqs_name(name, prefix=self.deployment.outputs.get("ExchangePrefix", ""))
        return parse_any_queue_name(name)

    def find(self, name: str) -> KeepSetting | None:
        """Return the setting of a queue, also of a declared queue by its name in SQS, which `list` shows."""
        return self.settings.find(self.sqs_name(name)) or self.settings.find(QueueName(name))

    def is_active(self, setting: KeepSetting) -> bool:
        """Return whether messages are kept: not those of a declared queue that was deleted, or declared again since."""
        if setting.keep_for is None or setting.declared is None:
            return setting.keep_for is not None
        found = self.queues.find(DeclaredName(setting.declared))
        return found is not None and found.settings.keep is not None

    def existing(self, name: str) -> QueueName:
        """Return the name in SQS of an existing queue. Raises `RejectedError`."""
        queue, sqs = self.sqs_name(name), self.deployment.session().client("sqs")
        try:
            sqs.get_queue_url(QueueName=queue)
        except sqs.exceptions.QueueDoesNotExist as error:
            raise RejectedError(
                f"there is no queue {name!r}: give a queue that is split or declared{_near(sqs, queue)}"
            ) from error
        return queue

    def readers(self, names: Sequence[str] | None, before: KeepSetting | None) -> dict[str, str]:
        """Return the ids of the readers with their names."""
        if names:
            return dict(map(self._principals.find, names))
        return dict(before.readers) if before and before.readers else dict([self._principals.caller()])

    def readable(self, name: str) -> KeepSetting:
        """Return the setting of a kept queue that the caller may read. Raises `ReplayRefused`."""
        principal, _ = self._principals.caller()
        (setting,) = readable({name: self.find(name)}, principal)
        return setting

    def store(self, setting: KeepSetting, before: KeepSetting | None) -> None:
        """Store a setting, and mark a declared queue. Raises `RejectedError` for a queue that is not declared."""
        self.settings.put(setting)
        if setting.declared is None:
            return
        marked = self.queues.mark(DeclaredName(setting.declared), setting.keep_for)
        if not marked and setting.keep_for is not None:
            if before:  # what was kept by it is still deleted on time
                self.settings.put(before)
            else:
                self.settings.forget(setting)
            raise RejectedError(f"queue {setting.declared!r} is not declared")

    def apply(self, queue: QueueName) -> dict[str, Any]:
        """Let the stage apply the stored setting of a queue, and return its result."""
        from signalbox.cli.splitting.stage import control_of

        with control_of(self.deployment) as client:
            result = client.ask("keep", {"queue": queue})
        return dict(result) if isinstance(result, dict) else {}

    @cached_property
    def _principals(self) -> IamReaders:
        session = self.deployment.session()
        return IamReaders(session.client("iam"), session.client("sts"))

    def _table(self, name: str) -> "DynamoTable":
        from signalbox.aws.shared.dynamodb import DynamoTable

        return DynamoTable(self.deployment.session().client("dynamodb"), output(self.deployment, name))


def _near(sqs: "SQSClient", queue: QueueName) -> str:
    """Return the queue in SQS that may be meant; nothing if the caller may not list the queues."""
    from botocore.exceptions import ClientError

    try:
        found = sqs.list_queues(QueueNamePrefix=queue[:1]).get("QueueUrls", ())
    except ClientError:
        return ""
    names = [url.rpartition("/")[2] for url in found]
    hint = suggestion(queue, names)
    return hint if "did you mean" in hint else ""


def _print(document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    kept = document["kept_seconds"]
    fields = {"queue": document["queue"], "kept for": duration_text(kept) if kept else "not kept"}
    if document.get("readable_by"):
        fields["readable by"] = ", ".join(document["readable_by"])
    if document["deleted"]:
        fields["deleted"] = f"{document['deleted']} objects"
    print_fields(fields)


def _document(setting: KeepSetting, *, is_active: bool) -> dict[str, object]:
    return {
        "queue": setting.queue,
        "declared": setting.declared,
        "active": is_active,
        "kept_seconds": None if setting.keep_for is None else int(setting.keep_for.total_seconds()),
        "readable_by": sorted(setting.readers.values()),
        "set_at": setting.set_at.isoformat(),
    }


def _row(setting: KeepSetting, *, is_active: bool) -> tuple[str, str, str, str]:
    kept = BEING_DELETED if setting.keep_for is None else duration_text(int(setting.keep_for.total_seconds()))
    readers = ", ".join(sorted(setting.readers.values())) or "-"
    state = f"{kept}, {NOT_NEW_ONES}" if setting.keep_for is not None and not is_active else kept
    return setting.declared or setting.queue, state, readers, local_time(setting.set_at.isoformat())
