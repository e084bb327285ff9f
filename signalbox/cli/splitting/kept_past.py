"""`signalbox split explain --over --sessions`: filters of files, evaluated on the kept messages of a queue."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from signalbox.cli.history.what_if import Figure, Past, chart_lines, draw, many
from signalbox.cli.shared.files import read_json
from signalbox.cli.shared.output import print_json, print_line, print_table
from signalbox.cli.shared.stage import output, say
from signalbox.cli.splitting.past import present_splits
from signalbox.errors import RejectedError

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment
    from signalbox.history.what_if.window import PastWindow
    from signalbox.kept.objects import KeptReader
    from signalbox.messages import Message
    from signalbox.splitting.forwarding.matching import Decision

DECLARED = "q_"
MAXIMUM_KEPT = 10_000  # messages of an answer


@dataclass(frozen=True, slots=True)
class KeptMessage:
    """A kept message and the beginning of the bucket in which it was kept."""

    message: "Message"
    bucket: datetime


def explain_kept(
    past: Past, sessions: Path, queue: str, *, sns: bool, s3_event: bool, aws: bool, stage: str, as_json: bool
) -> None:
    """Print how many kept messages of a queue each session of a file would get, and why."""
    from signalbox.aws.kept.store import S3KeptMessages
    from signalbox.cli.shared.deployment import find_deployment
    from signalbox.filters.languages import Languages
    from signalbox.splitting.forwarding.explanation import explained, parse_sessions
    from signalbox.splitting.model.session_config import QueueId

    described = parse_sessions(read_json(sessions), Languages())
    say(f"reading the messages of {queue!r} that were kept in the last {past.text}")
    deployment = find_deployment(aws=aws, stage=stage)
    reader = S3KeptMessages(lambda: deployment.session().client("s3"), output(deployment, "HistoryBucket"))
    queue_id, original = _names(queue, deployment, aws=aws, stage=stage)
    kept = list(_kept(reader, original, past.window))
    messages = [one.message for one in kept]
    decisions = list(explained(messages, described, QueueId(queue_id), sns=sns, s3_event=s3_event))
    _show(past, queue, kept, decisions, as_json=as_json)


def _names(queue: str, deployment: "Deployment", *, aws: bool, stage: str) -> tuple[str, str]:
    """Return a queue's id, by which sessions name it, and its name in SQS; of a queue that is not split, one for both.

    A declared queue has its name as its id.
    """
    from signalbox.sarracenia.rights.names import sqs_name

    for split in present_splits(aws=aws, stage=stage):
        for one in split["queues"]:
            if queue in (one["queue_id"], one["original"]):
                return str(one["queue_id"]), str(one["original"])
    prefix = deployment.outputs.get("ExchangePrefix", "")
    return queue, sqs_name(queue, prefix=prefix) if queue.startswith(DECLARED) else queue


def _kept(reader: "KeptReader", queue: str, window: "PastWindow") -> Iterator[KeptMessage]:
    """Yield the messages that were kept in a window, oldest first, each once. Raises `RejectedError` for too many."""
    from signalbox.kept.objects import KeptObject, is_kept, key_at, read_batch
    from signalbox.queues import QueueName

    seen: set[str] = set()
    for key in filter(is_kept, reader.keys(QueueName(queue), after=key_at(QueueName(queue), window.start))):
        kept_at = KeptObject.parse(key).kept_at
        if kept_at >= window.end:
            return
        for message in read_batch(text) if (text := reader.read(key)) is not None else ():
            if message.message_id not in seen:
                seen.add(message.message_id)
                yield KeptMessage(message, window.bucket.begin(kept_at.astimezone(UTC)))
        if len(seen) > MAXIMUM_KEPT:
            raise RejectedError(f"more than {MAXIMUM_KEPT:,} messages were kept in that time: ask about a shorter one")


def _show(
    past: Past, queue: str, kept: Sequence[KeptMessage], decisions: Sequence["Decision"], *, as_json: bool
) -> None:
    from signalbox.splitting.forwarding.explanation import as_document

    matched = [one for one, decision in zip(kept, decisions, strict=True) if decision.owner or decision.copies]
    lines = [f"{queue}: {many(len(matched), 'message')} of {len(kept):,} kept in the last {past.text} match a filter"]
    if not kept:
        lines = [f"{queue}: no message was kept in the last {past.text}; `signalbox keep set` keeps those to come"]
    buckets, counted = Counter(one.bucket for one in matched), Counter(row for one in decisions for row in _rows(one))
    if as_json:
        ids = [one.message.message_id for one in kept]
        documents = [as_document(number, decision) for number, decision in enumerate(decisions)]
        named = [{**document, "message": name} for document, name in zip(documents, ids, strict=True)]
        print_json({"queue": queue, "kept": len(kept), "matched": len(matched), "decisions": named})
    else:
        for line in (*lines, *chart_lines(past, buckets)):
            print_line(line)
        if counted:
            print_table(
                ["who", "what", "messages", "why"], ([*row[:2], f"{n:,}", row[2]] for row, n in counted.items())
            )
    draw(
        past,
        title=f"Filters on the kept messages of {queue}",
        lines=lines,
        figures=[Figure(f"{len(kept):,}", "kept"), Figure(f"{len(matched):,}", "match")],
        buckets=buckets,
        bars=("Who would get them", ((f"{row[0]}, {row[1]}", n) for row, n in counted.items())),
    )


def _rows(decision: "Decision") -> Iterator[tuple[str, str, str]]:
    """Yield who would get a message, whether as a copy, and why."""
    from signalbox.splitting.forwarding.matching import DEPLOYED

    reasons = {verdict.session: verdict.reason for verdict in decision.verdicts}
    owner = decision.owner
    yield owner or DEPLOYED, "would get", reasons[owner] if owner else "no session matches"
    for session in decision.copies:
        yield session, "would get a copy", reasons[session]
