"""History: the run's events of each capability in the lake, and the run of a Glue job."""

import time
from datetime import UTC, datetime, timedelta

from signalbox.aws.history.athena import quoted
from signalbox.cli.history.jobs import run_jobs
from signalbox.cli.verify.exchange import ORDERED_KEYS, PER_KEY
from signalbox.cli.verify.live import FRAMES
from signalbox.cli.verify.rendezvous import OFFERS
from signalbox.cli.verify.trial import NamedTrial
from signalbox.flows.exchange import COPIES, events_in_lake, facts_in_lake
from signalbox.flows.live import AFTER, BEFORE
from signalbox.flows.splitting import MESSAGES
from signalbox.flows.trial import expect
from signalbox.verify.patience import LAKE_SECONDS
from signalbox.verify.questions import DELAY, JOB_RUN, RECORD, TRUST
from signalbox.verify.report import Answer, TrialOutcome

CAPABILITY = "history"
JOB = "compact_history"
PUBLISHED_SECONDS = 600.0
PAUSE_SECONDS = {True: 10.0, False: 1.0}
OTHERS_SECONDS = 1_500.0
OTHERS = {"rendezvous", "splitting", "exchange"}
LOGGED = "logged"  # an event of a live exchange
# What the run did, as the least number of its events by capability and kind.
FACTS = {
    ("rendezvous", "answer"): OFFERS,
    ("splitting", "routed"): 2 * MESSAGES,
    ("exchange", "routed"): COPIES + len(ORDERED_KEYS) * PER_KEY,
    ("exchange", LOGGED): BEFORE + AFTER + FRAMES,
    ("live", "session"): 1,
    ("live", "subscription"): 1,
}


def verify_history(trial: NamedTrial, *, with_jobs: bool) -> None:
    """Run all steps."""
    journal, parts = trial.journal, trial.deployment.capabilities
    with journal.step(CAPABILITY, "the delivery stream is active") as timing:
        timing.detail = _stream_status(trial)
    if "exchange" in parts:
        _verify_arrival(trial)
    if with_jobs:
        _verify_job(trial)
    else:
        journal.skip(CAPABILITY, "a Glue job runs", "--without-jobs was given")
        journal.answer(JOB_RUN, {"job": JOB, "skipped": True}, is_expected=True)
    others = OTHERS.intersection(parts)
    trial.wait_until(lambda: trial.ended >= others, "the other parts have ended", seconds=OTHERS_SECONDS)
    if others:
        with journal.step(CAPABILITY, "the events of every capability are in the lake") as timing:
            with timing.measured():
                facts = _await_facts(trial)
            timing.detail = ", ".join(f"{name} {kind} {count}" for (name, kind), count in sorted(facts.items()))


def _verify_arrival(trial: NamedTrial) -> None:
    """Wait for the events of the messages that the exchange has routed."""
    journal = trial.journal
    trial.has_published.wait(PUBLISHED_SECONDS)
    with journal.step(CAPABILITY, "events reach the lake") as timing:
        expect(trial.published_at, "no message of the exchange was routed, so there are no events to look for")
        trial.wait_until(
            lambda: _has_all(trial),
            "all events are in the lake",
            seconds=LAKE_SECONDS,
            pause=PAUSE_SECONDS[trial.is_in_aws],
        )
        waits = [time.time() - moment for moment in trial.published_at]
        timing.latencies += waits
        answer = {"newest_event_seconds": round(min(waits), 1), "oldest_event_seconds": round(max(waits), 1)}
        journal.answer(DELAY, answer, is_expected=True)


def _verify_job(trial: NamedTrial) -> None:
    journal = trial.journal
    with journal.step(CAPABILITY, "a Glue job runs") as timing:
        with timing.measured():
            _run_job(trial)
        where = "Glue" if trial.is_in_aws else "Spark on this machine"
        timing.detail = f"{JOB}, in {where}"
        seconds = round(timing.latencies[0], 1)
        answer: dict[str, Answer] = {"job": JOB, "state": "SUCCEEDED", "in": where, "seconds": seconds}
        journal.answer(JOB_RUN, answer, is_expected=True)


def _stream_status(trial: NamedTrial) -> str:
    firehose = trial.deployment.session().client("firehose")
    found = firehose.describe_delivery_stream(DeliveryStreamName=trial.deployment.outputs["HistoryStream"])
    status = str(found["DeliveryStreamDescription"]["DeliveryStreamStatus"])
    trial.journal.answer(TRUST, {"delivery_stream": status}, is_expected=status == "ACTIVE")
    return status


def _has_all(trial: NamedTrial) -> bool:
    """Return whether each published message has its event."""
    return sum(events_in_lake(trial.deployment, trial.published).values()) >= len(trial.published)


def _await_facts(trial: NamedTrial) -> dict[tuple[str, str], int]:
    """Wait for the events of the capabilities that worked, and return the numbers of all of the run's events."""
    failed = {row.capability for row in trial.journal.rows if row.outcome is TrialOutcome.FAILED}
    worked, has_live = {row.capability for row in trial.journal.rows} - failed, "live" in trial.deployment.capabilities
    expected = {fact: least for fact, least in FACTS.items() if fact[0] in worked and (fact[1] != LOGGED or has_live)}

    facts: dict[tuple[str, str], int] = {}

    def has_all() -> bool:
        facts.update(_facts(trial))
        return all(facts.get(fact, 0) >= least for fact, least in expected.items())

    pause = PAUSE_SECONDS[trial.is_in_aws]
    try:
        trial.wait_until(has_all, f"the lake has at least {expected}", seconds=LAKE_SECONDS, pause=pause)
    finally:
        # A batch of messages is one record: the frames and the messages of splits came in batches.
        missing = sum(max(0, least - facts.get(fact, 0)) for fact, least in expected.items())
        trial.journal.answer(RECORD, {"events": sum(facts.values()), "missing": missing}, is_expected=missing == 0)
    return facts


def _facts(trial: NamedTrial) -> dict[tuple[str, str], int]:
    """Return the numbers of events whose message, source or destination has the run in its name."""
    run = trial.names.run
    named = " OR ".join(f"{column} LIKE {quoted(f'%{run}%')}" for column in ("message_id", "source", "destination"))
    rows = facts_in_lake(trial.deployment, named, columns="capability, kind")
    return {(str(row["capability"]), str(row["kind"])): int(row["facts"] or 0) for row in rows}


def _run_job(trial: NamedTrial) -> None:
    today = datetime.now(UTC).date()
    window = {"from": f"{today}", "to": f"{today + timedelta(days=1)}"}
    run_jobs(trial.deployment, [(JOB, window)], _discard)


def _discard(_line: str) -> None:
    """Discard Spark's output; an error has its end."""
