"""Glue job `replay`: sends logged events, dead letters or kept messages into an exchange or queue, each at most once.

Arguments (Glue 5.1 or later, with `--datalake-formats iceberg` and the catalog's settings; no bookmarks):

--replay_id       the replay's id: the value of the header `replay` of its messages, and the id to resume
--exchange        replay the events of this live exchange, as far as `export_logs` has exported them,
--topics          with topics that match this pattern (default `#`),
--from, --to      at or after the first time, and before the second: ISO 8601, UTC without a zone
--dead_letters    or replay the dead letters of this exchange or queue, also with --topics, --from and --to
--kept            or replay the kept messages of this queue, also with --topics; --from and --to are of their storage
--kept_since      with --kept: the time before which its setting keeps nothing; the caller is a reader of the queue,
                  which `signalbox replay` has checked: the job cannot know the caller
--into            the exchange (`x…`) or queue (`q_…`) that receives the messages
--rate            maximum messages a second (default 100)
--dry_run         `yes` counts the messages and sends none
--database, --bucket, --prefix, --stage, --exchange_prefix, --exchange_table, --stream, --region
                  the stage, from the job's defaults; the prefix `-` is empty

Prints one line of JSON for the plan, and one a second for the progress. The record is in
s3://<bucket>/<prefix><replay_id>.json; a run with the same --replay_id and no other selection continues the replay.
Messages that a killed run may have sent are sent again only if a FIFO queue deduplicates them; otherwise they are
`doubtful`. Each message that was sent is an event `replayed` of the history. Dead letters that were sent are deleted;
the others stay. The list of a replay's kept messages, by id, is in
s3://<bucket>/<prefix><replay_id>.kept-<digest>.json.
"""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial

from glue_jobs.shared.arguments import parse_arguments
from glue_jobs.shared.kept_messages import KeptCount, KeptFormat, kept_queue, window
from glue_jobs.shared.log_source import LogSelection, LogSource, ReplayVolume, newest_snapshot, replay_volume
from glue_jobs.shared.replay_destination import Destination, ReplayStage
from signalbox.aws.history.dead_letter_source import DeadLetterSource
from signalbox.aws.history.kept_source import NO_LONGER_KEPT, KeptSource, S3KeptSelections
from signalbox.aws.kept.store import S3KeptMessages
from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.messages.end_events import ReplayOrigin
from signalbox.exchange.messages.replayed_messages import OriginalMessage, Replayable, original_of_dead_letter
from signalbox.exchange.model.names import dead_letter_name
from signalbox.exchange.model.patterns import Pattern
from signalbox.history.replay_run import ReplayRun, ReplaySource, SourceMessage
from signalbox.history.replay_state import (
    InvalidReplay,
    RateLimit,
    ReplayId,
    ReplayProgress,
    ReplayState,
    SendResult,
    min_seconds,
    parse_rate,
    parse_replay_id,
)
from signalbox.kept.selection import KeptMessages
from signalbox.messages import MessageId
from signalbox.queues import is_fifo
from signalbox.sarracenia.rights.names import parse_exchange_name

STAGE = ("database", "bucket", "prefix", "stage", "exchange_prefix", "exchange_table", "stream", "region")
SOURCES = ("exchange", "dead_letters", "kept")
SELECTION = (*SOURCES, "topics", "from", "to", "into")
DEFAULT_RATE = "100"
DEAD_LETTER_BATCH = 100
NOT_REPLAYABLE = "that no exchange accepts, such as without a routing key: publish them again, corrected"
PROGRESS_INTERVAL_SECONDS = 1.0


def main(argv: Sequence[str]) -> None:
    """Plan the replay of the arguments, or continue it, and send its messages unless it is a dry run."""
    arguments = parse_arguments(argv, (*STAGE, "replay_id"), optional=(*SELECTION, "kept_since", "rate", "dry_run"))
    replay_id, rate = parse_replay_id(arguments["replay_id"]), parse_rate(arguments.get("rate", DEFAULT_RATE))
    stage = ReplayStage(arguments)
    progress = stage.records.load(replay_id)
    request = {name: arguments[name] for name in SELECTION if name in arguments}
    if progress is None:
        progress = _plan(stage, replay_id, request, rate=rate)
    elif request and request != progress.asked:
        raise InvalidReplay(
            f"replay {str(replay_id)!r} has another selection: {dict(progress.asked)}; choose another id"
        )
    if arguments.get("dry_run", "no") != "yes":
        _execute(stage, progress, rate=rate)


def _plan(stage: ReplayStage, replay_id: ReplayId, request: Mapping[str, str], *, rate: int) -> ReplayProgress:
    """Count the selected messages, and store the replay's record."""
    _check(request)
    Destination(stage, request["into"], replay_id).message_builder()  # raises if the destination is not declared
    now = datetime.now(UTC)
    if "kept" in request:
        source, found = _list_kept(stage, replay_id, request, now=now)
    elif "dead_letters" in request:
        source, found = "", _count_dead_letters(stage, request)
    else:
        source = newest_snapshot(stage.lake)
        found = replay_volume(stage.lake, source, _log_selection(request))
    progress = ReplayProgress(replay_id, dict(request), source, found.messages, found.size_bytes, planned_at=now)
    stage.records.save(progress)
    plan = {**asdict(found), "seconds": min_seconds(found.messages, rate), "rate": rate}
    body = json.dumps(plan).encode()
    stage.s3.put_object(
        Bucket=stage.arguments["bucket"], Key=f"{stage.arguments['prefix']}{replay_id}.plan.json", Body=body
    )
    _print(progress, **plan)
    return progress


def _check(request: Mapping[str, str]) -> None:
    if sum(name in request for name in SOURCES) != 1:
        raise InvalidReplay("give one of --exchange, --dead_letters and --kept: the source of the messages")
    if "into" not in request:
        raise InvalidReplay("give --into: the exchange or queue that receives the messages")
    if not request["into"].startswith(("x", "q_")):
        raise InvalidReplay(f"--into {request['into']!r}: expected an exchange ('x…') or a queue ('q_…')")
    _filters(request)


def _filters(request: Mapping[str, str]) -> tuple[Pattern, datetime | None, datetime | None]:
    return Pattern.parse(request.get("topics", "#")), _moment(request.get("from")), _moment(request.get("to"))


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidReplay(f"{text!r} is not a time such as 2026-11-21T12:00:00") from error
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _log_selection(request: Mapping[str, str]) -> LogSelection:
    topics, start, end = _filters(request)
    exchange = parse_exchange_name(request["exchange"])
    return LogSelection(exchange, topics, start, end, for_all_sessions=request["into"].startswith("x"))


def _dead_letters(stage: ReplayStage, request: Mapping[str, str]) -> DeadLetterSource:
    name = request["dead_letters"]
    exchange = parse_exchange_name(name) if name.startswith("x") else None
    topics, start, end = _filters(request)
    matcher: BindingTrie[bool] = BindingTrie()
    matcher.add(topics, True)  # noqa: FBT003 - the value of a match

    def is_selected(original: OriginalMessage) -> bool:
        at = original.published_at
        is_in_time = (start is None or at >= start) and (end is None or at < end)
        return is_in_time and bool(matcher.matching(original.properties.key))

    return DeadLetterSource(
        stage.sqs,
        stage.queue_url(dead_letter_name(stage.names.queue(name))),
        read=partial(original_of_dead_letter, exchange=exchange),
        is_selected=is_selected,
    )


def _count_dead_letters(stage: ReplayStage, request: Mapping[str, str]) -> ReplayVolume:
    """Count the selected dead letters, and make all of them visible again."""
    dead_letters = _dead_letters(stage, request)
    nothing = ReplayProgress(ReplayId(""), {}, "", 0, 0, planned_at=datetime.now(UTC))
    messages, size, topics = 0, 0, dict[str, int]()
    try:
        while found := dead_letters.take(DEAD_LETTER_BATCH, nothing):
            for one in found:
                messages, size = messages + 1, size + len(one.item.properties.body.encode(errors="replace"))
                topics[one.item.properties.key] = topics.get(one.item.properties.key, 0) + 1
    finally:
        dead_letters.release()
    left_out = {"of other topics or times": dead_letters.not_selected, NOT_REPLAYABLE: dead_letters.unreadable}
    return ReplayVolume(messages, size, topics, {reason: count for reason, count in left_out.items() if count})


def _list_kept(
    stage: ReplayStage, replay_id: ReplayId, request: Mapping[str, str], *, now: datetime
) -> tuple[str, ReplayVolume]:
    """Store the list of the selected kept messages; return its name and their count."""
    topics, start, end = _filters(request)
    oldest = _moment(stage.arguments.get("kept_since"))
    if oldest is None:
        raise InvalidReplay("give --kept_since, the time before which the queue's setting keeps nothing")
    begin, stop = window(start, end, oldest=oldest, now=now)
    kept = KeptMessages(_kept_messages(stage), kept_queue(request["kept"], stage.names), begin, stop)
    selection, found = KeptCount(kept, KeptFormat(request["kept"], request["into"]), topics).select()
    return _kept_lists(stage).save(replay_id, selection), found


def _kept_messages(stage: ReplayStage) -> S3KeptMessages:
    return S3KeptMessages(lambda: stage.s3, stage.arguments["bucket"])


def _kept_lists(stage: ReplayStage) -> S3KeptSelections:
    return S3KeptSelections(stage.s3, stage.arguments["bucket"], stage.arguments["prefix"])


def _source(stage: ReplayStage, progress: ReplayProgress) -> ReplaySource[Replayable | None]:
    """Return the source of a replay at the position of its record."""
    request = progress.asked
    if "kept" in request:
        selection = _kept_lists(stage).load(progress.replay_id, progress.source)
        read = KeptFormat(request["kept"], request["into"]).read
        return KeptSource(_kept_messages(stage), selection, progress.position, read)
    if "dead_letters" in request:
        return _dead_letters(stage, request)
    return LogSource(stage.lake, progress.source, _log_selection(request), progress.position)


def _execute(stage: ReplayStage, progress: ReplayProgress, *, rate: int) -> None:
    request, last_report = progress.asked, [0.0]
    kind = next(name for name in SOURCES if name in request)
    replay = ReplayOrigin(progress.replay_id, kind, request[kind], request["into"])
    destination = Destination(stage, request["into"], progress.replay_id)
    write, resender = destination.message_builder(), destination.resender()
    source = _source(stage, progress)
    dead_letters = source if isinstance(source, DeadLetterSource) else None
    claimed_before = progress.claim.ids if progress.claim else ()

    def send(ready: Sequence[SourceMessage[Replayable | None]]) -> SendResult:
        outcome = resender.send([write(one.item) for one in ready if one.item is not None])
        _record(stage, replay, ready, outcome.taken)
        gone = [one.origin for one in ready if one.item is None]
        return replace(
            outcome,
            refused={**outcome.refused, **{one: NO_LONGER_KEPT for one in gone if one not in claimed_before}},
            doubtful=(*outcome.doubtful, *(one for one in gone if one in claimed_before)),
        )

    def report_progress(now: ReplayProgress) -> None:
        if now.state is ReplayState.DONE or time.monotonic() - last_report[0] >= PROGRESS_INTERVAL_SECONDS:
            last_report[0] = time.monotonic()
            _print(now)

    run = ReplayRun(
        source=source,
        send=send,
        records=stage.records,
        limit=RateLimit(rate, time.monotonic()),
        is_fifo=is_fifo(request["into"]),
        now=lambda: datetime.now(UTC),
        monotonic=time.monotonic,
        sleep=time.sleep,
        report_progress=report_progress,
    )
    try:
        done = run.execute(progress)
    finally:
        if dead_letters is not None:
            dead_letters.release()
    if dead_letters is not None and (held := dead_letters.in_flight()):
        _print(done, held=held)


def _record(
    stage: ReplayStage,
    replay: ReplayOrigin,
    ready: Sequence[SourceMessage[Replayable | None]],
    taken: Mapping[str, str],
) -> None:
    """Write the event of each message that was sent; say how many Firehose did not take."""
    now = datetime.now(UTC)
    sent = [(one.item, MessageId(taken[one.origin])) for one in ready if one.item is not None and one.origin in taken]
    lines = [f"{replay.sent(item, copy=copy, at=now).to_json()}\n" for item, copy in sent]
    if lost := stage.stream.put(lines):
        print(f"replay: {len(lost)} events were not written to the history", flush=True)


def _print(progress: ReplayProgress, **more: object) -> None:
    report = {
        "replay": progress.replay_id,
        "state": str(progress.state),
        "messages": progress.messages,
        "sent": progress.sent,
        "refused": progress.refused_count,
        "doubtful": len(progress.doubtful),
        **more,
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(sys.argv)
