"""Glue job: messages that were published before into an exchange or a queue, at a rate, and never twice.

Arguments (Glue 5.1 or later, with `--datalake-formats iceberg` and the catalog's settings; bookmarks are not used):

--replay_id       names the replay: the value of the header `replay` of all that it sends, and what to resume
--exchange        replays what was published to this live exchange, as far as `export_logs` has exported it,
--topics          whose topics match this pattern (default `#`),
--from, --to      from a moment on, and before another: ISO 8601, UTC unless it has a zone
--dead_letters    or replays the dead letters of this exchange or queue, with the same --topics, --from and --to
--into            the exchange (`x…`) or queue (`q_…`) that gets them
--rate            messages a second, at most (default 100)
--dry_run         `yes` counts only
--database, --bucket, --prefix, --stage, --exchange_prefix, --exchange_table, --region
                  the stage; the job's defaults. `-` is an empty prefix of exchanges

Prints a line of JSON for the plan, and one a second for how far it is. What it is and how far is kept in
s3://<bucket>/<prefix><replay_id>.json; started again with the same --replay_id alone, a replay goes on. What a killed
run may have sent is sent again only where a FIFO queue drops it, and is `doubtful` elsewhere. Dead letters that were
sent are deleted; the others stay.
"""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial

from glue_jobs.replay_log import Counted, LogSource, Wanted, counted, newest_snapshot
from glue_jobs.shared.arguments import resolved
from glue_jobs.shared.replay_destination import Place, Target
from signalbox.aws.history.dead_letter_source import DeadLetters
from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.messages.replayed_messages import OriginalMessage, original_of_dead_letter
from signalbox.exchange.model.names import dead_letter_name
from signalbox.exchange.model.patterns import Pattern
from signalbox.history.replay_run import Ready, Run
from signalbox.history.replay_state import (
    InvalidReplay,
    Pace,
    Progress,
    ReplayId,
    Sent,
    State,
    parse_rate,
    parse_replay_id,
    seconds_needed,
)
from signalbox.messages import Message
from signalbox.queues import is_fifo
from signalbox.sarracenia.rights.names import ExchangeName, parse_exchange_name

STAGE = ("database", "bucket", "prefix", "stage", "exchange_prefix", "exchange_table", "region")
WHAT = ("exchange", "topics", "from", "to", "dead_letters", "into")
DEFAULT_RATE = "100"
LETTERS_AT_ONCE = 100
TOLD_EVERY_SECONDS = 1.0


def main(argv: Sequence[str]) -> None:
    """Plan the replay that the arguments name, or go on with it."""
    given = resolved(argv, (*STAGE, "replay_id"), optional=(*WHAT, "rate", "dry_run"))
    replay_id, rate = parse_replay_id(given["replay_id"]), parse_rate(given.get("rate", DEFAULT_RATE))
    place = Place(given)
    progress = place.records.load(replay_id)
    asked = {name: given[name] for name in WHAT if name in given}
    if progress is None:
        progress = _planned(place, replay_id, asked, rate=rate)
    elif asked and asked != progress.asked:
        raise InvalidReplay(
            f"replay {str(replay_id)!r} is of something else: {dict(progress.asked)}; choose another id"
        )
    if given.get("dry_run", "no") != "yes":
        _carry_out(place, progress, rate=rate)


def _planned(place: Place, replay_id: ReplayId, asked: Mapping[str, str], *, rate: int) -> Progress:
    """Count what is asked for, and keep that as the replay's record."""
    _check(asked)
    Target(place, asked["into"], replay_id).writer()  # refuses what is not there
    snapshot = newest_snapshot(place.lake) if "exchange" in asked else ""
    found = (
        _count_letters(place, asked) if not snapshot and "dead_letters" in asked else _count_log(place, asked, snapshot)
    )
    progress = Progress(
        replay_id, dict(asked), snapshot, found.messages, found.size_bytes, planned_at=datetime.now(UTC)
    )
    place.records.save(progress)
    plan = {**asdict(found), "seconds": seconds_needed(found.messages, rate), "rate": rate}
    body = json.dumps(plan).encode()
    place.s3.put_object(Bucket=place.given["bucket"], Key=f"{place.given['prefix']}{replay_id}.plan.json", Body=body)
    _print(progress, **plan)
    return progress


def _check(asked: Mapping[str, str]) -> None:
    if ("exchange" in asked) == ("dead_letters" in asked):
        raise InvalidReplay("give --exchange or --dead_letters: whence the messages come")
    if "into" not in asked:
        raise InvalidReplay("give --into: the exchange or queue that gets the messages")
    if not asked["into"].startswith(("x", "q_")):
        raise InvalidReplay(f"--into {asked['into']!r}: expected an exchange, which begins with 'x', or a queue, 'q_'")
    _chosen(asked)


def _chosen(asked: Mapping[str, str]) -> tuple[Pattern, datetime | None, datetime | None]:
    return Pattern.parse(asked.get("topics", "#")), _moment(asked.get("from")), _moment(asked.get("to"))


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidReplay(f"{text!r} is no moment such as 2026-11-21T12:00:00") from error
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _wanted(asked: Mapping[str, str]) -> Wanted:
    topics, start, end = _chosen(asked)
    exchange = parse_exchange_name(asked["exchange"])
    return Wanted(exchange, topics, start, end, for_everybody=asked["into"].startswith("x"))


def _count_log(place: Place, asked: Mapping[str, str], snapshot: str) -> Counted:
    return counted(place.lake, snapshot, _wanted(asked))


def _letters(place: Place, asked: Mapping[str, str]) -> DeadLetters:
    name = asked["dead_letters"]
    beside = parse_exchange_name(name) if name.startswith("x") else None
    topics, start, end = _chosen(asked)
    matcher: BindingTrie[bool] = BindingTrie()
    matcher.add(topics, True)  # noqa: FBT003 - something to find

    def is_wanted(original: OriginalMessage) -> bool:
        at = original.published_at
        is_in_time = (start is None or at >= start) and (end is None or at < end)
        return is_in_time and bool(matcher.matching(original.properties.key))

    return DeadLetters(
        place.sqs,
        place.queue_url(dead_letter_name(place.names.queue(name))),
        read=partial(_original, exchange=beside),
        is_wanted=is_wanted,
    )


def _original(letter: Message, *, exchange: ExchangeName | None) -> OriginalMessage:
    return original_of_dead_letter(letter, exchange=exchange)


def _count_letters(place: Place, asked: Mapping[str, str]) -> Counted:
    """Look at all letters, and let others see them again."""
    letters = _letters(place, asked)
    nothing = Progress(ReplayId(""), {}, "", 0, 0, planned_at=datetime.now(UTC))
    messages, size, topics = 0, 0, dict[str, int]()
    try:
        while found := letters.take(LETTERS_AT_ONCE, nothing):
            for one in found:
                messages, size = messages + 1, size + len(one.item.properties.body.encode(errors="replace"))
                topics[one.item.properties.key] = topics.get(one.item.properties.key, 0) + 1
    finally:
        letters.release()
    left_out = {"of other topics or times": letters.passed_over, "not readable": letters.unreadable}
    return Counted(messages, size, topics, {reason: count for reason, count in left_out.items() if count})


def _carry_out(place: Place, progress: Progress, *, rate: int) -> None:
    asked, told = progress.asked, [0.0]
    target = Target(place, asked["into"], progress.replay_id)
    write, resender = target.writer(), target.resender()
    letters = _letters(place, asked) if "dead_letters" in asked else None
    source = letters or LogSource(place.lake, progress.source, _wanted(asked), progress.position)

    def send(ready: Sequence[Ready[OriginalMessage]]) -> Sent:
        return resender.send([write(one.item) for one in ready])

    def tell(now: Progress) -> None:
        if now.state is State.DONE or time.monotonic() - told[0] >= TOLD_EVERY_SECONDS:
            told[0] = time.monotonic()
            _print(now)

    run = Run(
        source=source,
        send=send,
        records=place.records,
        pace=Pace(rate, time.monotonic()),
        is_fifo=is_fifo(asked["into"]),
        now=lambda: datetime.now(UTC),
        clock=time.monotonic,
        sleep=time.sleep,
        tell=tell,
    )
    try:
        done = run.carry_out(progress)
    finally:
        if letters is not None:
            letters.release()
    if letters is not None and (held := letters.in_flight()):
        _print(done, held=held)


def _print(progress: Progress, **more: object) -> None:
    told = {
        "replay": progress.replay_id,
        "state": str(progress.state),
        "messages": progress.messages,
        "sent": progress.sent,
        "refused": progress.refused_count,
        "doubtful": len(progress.doubtful),
        **more,
    }
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv)
