"""`signalbox split audit` and `policy`: the history of a message, and the minimal IAM policy."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from signalbox.cli.shared.output import print_json, print_table
from signalbox.cli.shared.stage import OutputOptions, local_time, say
from signalbox.cli.splitting.stage import control
from signalbox.errors import RejectedError
from signalbox.queues import QueueName
from signalbox.splitting.control.commands import DEFAULT_AUDIT_DAYS, MAXIMUM_AUDIT_DAYS
from signalbox.splitting.model.claims import DEPLOYED
from signalbox.splitting.queues.names import DEFAULT_PREFIX
from signalbox.splitting.queues.policy import QueueTag, Splittable, policy_document

ANY = "*"
COLUMNS = ("time", "event", "who got it", "queue", "attempt", "ms since sent", "why")


def audit(
    *,
    message_id: Annotated[str, typer.Argument(help="MessageId that the message has in its original queue.")],
    days: Annotated[
        int, typer.Option(help="Days of history to search.", min=1, max=MAXIMUM_AUDIT_DAYS)
    ] = DEFAULT_AUDIT_DAYS,
    options: OutputOptions,
) -> None:
    """Show who received a message, when, and by which filter; the history lags by about a minute."""
    with control(options) as client:
        result = client.ask("audit", {"message_id": message_id, "days": days})
    rows = list(result["events"]) if isinstance(result, dict) else []
    if not rows:
        say(f"no events of {message_id!r} in the last {days} days; the newest events take about a minute")
    if options.as_json:
        print_json(rows)
    elif rows:
        print_table(COLUMNS, map(_shown, rows))


def _shown(row: Mapping[str, Any]) -> list[str]:
    labels = row["labels"]
    who = labels.get("heir") or labels.get("session") or DEPLOYED
    why = labels.get("verdict") or row["reason"] or ("no session matches" if who == DEPLOYED else "")
    why = "; ".join(filter(None, (why, labels.get("s3_metadata"))))
    event = f"{row['kind']}: {row['outcome']}"
    return [
        local_time(f"{row['occurred_at']}+00:00"),  # Athena's text has no zone
        event,
        who,
        row["destination"] or "",
        row["attempt"] or "",
        row["latency_ms"] or "",
        why,
    ]


def policy(
    *,
    queue: Annotated[
        list[str] | None, typer.Option(help="Name of a queue that may be split; repeatable.", metavar="NAME")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Tag of all queues that may be split.", metavar="KEY=VALUE")] = None,
    temporary_tag: Annotated[
        str | None,
        typer.Option(
            help="Tag of the temporary queues, which the registries must set; any if not given.", metavar="KEY=VALUE"
        ),
    ] = None,
    dead_letter_queue: Annotated[
        list[str] | None, typer.Option(help="Name of the dead-letter queue of a --queue; repeatable.", metavar="NAME")
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option(help="ARN of the KMS key of an encrypted queue; repeatable.", metavar="ARN")
    ] = None,
    prefix: Annotated[str, typer.Option(help="Prefix of the names of temporary queues.")] = DEFAULT_PREFIX,
    region: Annotated[str, typer.Option(help="Region of the queues; any if not given.")] = ANY,
    account: Annotated[str, typer.Option(help="Account of the queues; any if not given.")] = ANY,
    partition: Annotated[str, typer.Option(help="Partition of AWS.")] = "aws",
) -> None:
    """Print the minimal IAM policy for splitting queues; needs no stage and always prints JSON."""
    if key and region == ANY:
        raise RejectedError("--key needs --region: only SQS of that region may use the keys")
    splittable = Splittable(
        f"arn:{partition}:sqs:{region}:{account}:",
        queues=tuple(map(QueueName, queue or ())),
        tag=None if tag is None else QueueTag.parse(tag),
        dead_letter_queues=tuple(map(QueueName, dead_letter_queue or ())),
        key_arns=tuple(key or ()),
        prefix=prefix,
        temporary_tag=None if temporary_tag is None else QueueTag.parse(temporary_tag),
    )
    print_json(policy_document(splittable))
