"""The filters of sessions as they are now, evaluated on a traced message that is kept."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signalbox.cli.shared.stage import output, say
from signalbox.errors import SignalboxError
from signalbox.kept.objects import KeptReader, read_batch

if TYPE_CHECKING:
    from signalbox.clients.control import ControlClient
    from signalbox.clients.deployment import Deployment
    from signalbox.history.event import HistoryEvent
    from signalbox.history.trace.story import Story
    from signalbox.messages import Message

MAXIMUM_MESSAGES = 5  # each is an object to read and a command to the stage


@dataclass(frozen=True, slots=True)
class FilterVerdict:
    """The verdict of a session's filter on a kept message of a split queue; `reason` quotes the filter."""

    queue: str
    message_id: str
    session: str
    mode: str
    matches: bool
    reason: str


def filter_verdicts(deployment: "Deployment", found_stories: "Iterable[Story]") -> list[FilterVerdict]:
    """Return the verdicts of the sessions that run now; none if the caller may not read what is kept."""
    from signalbox.cli.splitting.stage import control_of

    kept = list(_kept(found_stories))[:MAXIMUM_MESSAGES]
    if not kept:
        return []
    try:
        with control_of(deployment) as client:
            splits: Any = client.ask("status")
            return list(_verdicts(deployment, kept, [one for one in splits if "unreadable" not in one], client))
    except SignalboxError as error:
        say(f"the filters as they are now could not be evaluated: {error}")
        return []


def _kept(found_stories: "Iterable[Story]") -> "Iterator[HistoryEvent]":
    for story in found_stories:
        for event in (step.event for step in story.steps if step.event is not None):
            if (event.kind, event.outcome) == ("kept", "stored"):
                yield event


def _verdicts(
    deployment: "Deployment",
    kept: "Sequence[HistoryEvent]",
    splits: Sequence[Mapping[str, Any]],
    client: "ControlClient",
) -> Iterator[FilterVerdict]:
    from signalbox.aws.kept.store import S3KeptMessages

    reader = S3KeptMessages(lambda: deployment.session().client("s3"), output(deployment, "HistoryBucket"))
    queues = ((split["target"], queue) for split in splits for queue in split["queues"])
    split_of = {queue["original"]: (target, queue["queue_id"]) for target, queue in queues}
    for event in kept:
        target, queue_id = split_of.get(event.source, (None, None))
        message = _message(reader, event) if target else None
        if message is None:
            continue
        asked = {"target": target, "queue_id": queue_id, "messages": [dict(message.document)]}
        result = client.ask("explain", asked)
        for one in result["decisions"][0]["verdicts"] if isinstance(result, dict) else ():
            known = {name: one[name] for name in ("session", "mode", "matches", "reason")}
            yield FilterVerdict(queue=str(event.source), message_id=str(event.message_id), **known)


def _message(reader: KeptReader, event: "HistoryEvent") -> "Message | None":
    """Return the kept message of an event; None if it was deleted meanwhile."""
    text = reader.read(event.labels.get("object", ""))
    messages = () if text is None else read_batch(text)
    return next((one for one in messages if one.message_id == event.message_id), None)
