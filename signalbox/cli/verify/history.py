"""History: the run's events in the lake, and the run of a Glue job."""

import time
from datetime import UTC, datetime, timedelta

from signalbox.cli.history.jobs import run_jobs
from signalbox.cli.verify.trial import Trial, expect
from signalbox.local.demo.exchange import events_in_lake
from signalbox.messages import MessageId

CAPABILITY = "history"
JOB = "compact_history"
PUBLISHED_SECONDS = 600.0
# Firehose buffers for a minute, its first delivery takes longer, and it retries what fails.
LAKE_SECONDS = 600.0
PAUSE_SECONDS = {True: 10.0, False: 1.0}


def verify_history(trial: Trial, *, with_jobs: bool) -> None:
    """Run all steps; needs published messages of the exchange."""
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
        journal.answer("time from an event to the lake (Firehose's buffering)", answer)
    if not with_jobs:
        journal.skip(CAPABILITY, "a Glue job runs", "--without-jobs was given")
        journal.answer("run of a Glue job", {"job": JOB, "skipped": True})
        return
    with journal.step(CAPABILITY, "a Glue job runs") as timing:
        with timing.measured():
            _run_job(trial)
        where = "Glue" if trial.is_in_aws else "Spark on this machine"
        timing.detail = f"{JOB}, in {where}"
        seconds = round(timing.latencies[0], 1)
        journal.answer("run of a Glue job", {"job": JOB, "state": "SUCCEEDED", "in": where, "seconds": seconds})


def _has_all(trial: Trial) -> bool:
    """Return whether each published message has its event."""
    published = [MessageId(one) for one in trial.published]
    return sum(events_in_lake(trial.deployment, published).values()) >= len(published)


def _run_job(trial: Trial) -> None:
    today = datetime.now(UTC).date()
    window = {"from": f"{today}", "to": f"{today + timedelta(days=1)}"}
    run_jobs(trial.deployment, [(JOB, window)], _discard)


def _discard(_line: str) -> None:
    """Discard Spark's output; an error has its end."""
