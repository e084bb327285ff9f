"""The command `signalbox replay`, which sends published messages, dead letters or kept messages again."""

import json
import secrets
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from signalbox.cli.history.jobs import run_jobs
from signalbox.cli.history.keep import KeptQueues
from signalbox.cli.history.names import check_names, is_live
from signalbox.cli.shared.output import print_fields, print_json
from signalbox.cli.shared.stage import OutputOptions, duration, output, say
from signalbox.errors import RejectedError
from signalbox.exchange.model.patterns import Pattern
from signalbox.history.jobs import REPLAY_PREFIX
from signalbox.history.replay_state import ReplayId, ReplayProgress, parse_replay_id

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment

ID_BYTES = 3
SOURCES = ("exchange", "dead_letters", "kept")


def replay(
    *,
    exchange: Annotated[
        str | None, typer.Option(help="Replay the events of this live exchange.", metavar="EXCHANGE")
    ] = None,
    dead_letters: Annotated[
        str | None, typer.Option(help="Replay the dead letters of this exchange or queue.", metavar="NAME")
    ] = None,
    kept: Annotated[
        str | None,
        typer.Option(
            help="Replay the kept messages of this queue; its setting must name you as a reader.", metavar="QUEUE"
        ),
    ] = None,
    topics: Annotated[str | None, typer.Option(help="Only routing keys that match this pattern; default: #.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="Only messages at or after this time, in UTC.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="Only messages before this time, in UTC.")] = None,
    into: Annotated[str | None, typer.Option(help="The exchange or queue that receives the messages.")] = None,
    rate: Annotated[int, typer.Option(help="Maximum messages a second.", min=1, max=1_000)] = 100,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count only; --resume sends the messages later.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Send without confirmation.")] = False,
    replay_id: Annotated[
        str | None, typer.Option("--id", help="Id of the replay, in a header of its messages; default: generated.")
    ] = None,
    resume: Annotated[str | None, typer.Option(help="Continue this replay.", metavar="ID")] = None,
    options: OutputOptions,
) -> None:
    """Replay messages at a limited rate, each at most once, with a mark; show their number and size first."""
    sources = {"exchange": exchange, "dead_letters": dead_letters, "kept": kept}
    given = {**sources, "topics": topics, "from": start, "to": end, "into": into}
    selection = {name: text for name, text in given.items() if text is not None}
    name = _checked_id(selection, replay_id=replay_id, resume=resume)
    deployment = options.deployment()
    say(f"replay {name} on {deployment.place}")
    run = _Replay(deployment, name, {"replay_id": name, "rate": str(rate)})
    if resume is None:
        run.plan(selection, sends=yes and not dry_run)
        if not (yes or options.as_json) or not run.record().messages:
            run.show_plan()
    if not run.record().messages:
        say("no message is selected: nothing is sent")
    elif dry_run or not (yes or resume or (sys.stdin.isatty() and typer.confirm("Send them?", err=True))):
        say(f"nothing is sent; `signalbox replay --resume {name}` sends the messages")
    elif resume is not None or not yes:
        run.send()
    _print_record(run.record(), as_json=options.as_json)


def _checked_id(selection: Mapping[str, str], *, replay_id: str | None, resume: str | None) -> ReplayId:
    """Return the replay's id. Raises `RejectedError` for options that exclude each other, before a job starts."""
    if resume is not None:
        if selection or replay_id is not None:
            raise RejectedError("--resume continues a replay with its original options: give no others")
        return parse_replay_id(resume)
    if sum(name in selection for name in SOURCES) != 1:
        raise RejectedError("give one of --exchange, --dead-letters and --kept: the source of the messages")
    if "into" not in selection:
        raise RejectedError("give --into: the exchange or queue that receives the messages")
    Pattern.parse(selection.get("topics", "#"))
    begin, end = (_moment(selection.get(name), f"--{name}") for name in ("from", "to"))
    if begin and end and end <= begin:
        raise RejectedError(f"--to {selection['to']} is not after --from {selection['from']}")
    made = f"{datetime.now(UTC):%Y-%m-%d}-{secrets.token_hex(ID_BYTES)}"
    return parse_replay_id(replay_id or made)


def _moment(text: str | None, option: str) -> datetime | None:
    """Return the time of an option. Raises `RejectedError` for a text that the job cannot read as a time."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        example = f"{datetime.now(UTC):%Y-%m-%dT%H:%M}"
        raise RejectedError(f"{option}: expected a time in UTC such as {example}, not {text!r}") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


class _Replay:
    """A replay on a stage."""

    def __init__(self, deployment: "Deployment", name: ReplayId, arguments: Mapping[str, str]) -> None:
        self.deployment, self.name, self.arguments = deployment, name, arguments
        self.bucket = output(deployment, "HistoryBucket")

    def plan(self, selection: Mapping[str, str], *, sends: bool) -> None:
        """Export new events of the log, count the selected messages, and send them at once if `sends`.

        Raises `RejectedError` for names that do not exist, and for kept messages that the caller may not read, or if
        none are selected.
        """
        if "kept" not in selection:  # its readers may not list exchanges and queues; the job refuses a wrong name
            check_names(self.deployment, selection)
        of_log = {name: selection[name] for name in ("exchange", "topics") if name in selection}
        has_log = "exchange" in selection and is_live(self.deployment, selection["exchange"])
        export = [("export_logs", of_log)] if has_log else []
        kept = self._of_kept(selection["kept"]) if "kept" in selection else {}
        arguments = {**self.arguments, **selection, **kept, "dry_run": "no" if sends else "yes"}
        run_jobs(self.deployment, [*export, ("replay", arguments)], self._print_progress)
        if kept and not self.record().messages:
            self.show_plan()
            raise RejectedError(
                f"no kept message of queue {kept['kept']!r} is selected: --from and --to are times at which messages "
                "were kept; `signalbox keep list` shows for how long they are"
            )

    def send(self) -> None:
        """Send the remaining messages. Raises `RejectedError` for kept messages that the caller may not read."""
        if "kept" in (asked := self.record().asked):
            self._of_kept(asked["kept"])
        run_jobs(self.deployment, [("replay", self.arguments)], self._print_progress)

    def _of_kept(self, queue: str) -> dict[str, str]:
        """Return the job's arguments for the kept messages of a queue that the caller may read.

        The setting and the caller are known here: the job has its own role, and reads no settings.
        """
        setting = KeptQueues(self.deployment).readable(queue)
        oldest = setting.oldest(datetime.now(UTC))
        return {"kept": setting.declared or str(setting.queue), "kept_since": oldest.isoformat(timespec="seconds")}

    def record(self) -> ReplayProgress:
        """Return the replay's record."""
        from signalbox.aws.history.replay_records import S3ReplayRecords

        found = S3ReplayRecords(self.deployment.session().client("s3"), self.bucket, REPLAY_PREFIX).load(self.name)
        if found is None:
            raise RejectedError(f"replay {str(self.name)!r} does not exist")
        return found

    def show_plan(self) -> None:
        """Print the number and size of the messages, by topic, and of the excluded ones, by reason."""
        key = f"{REPLAY_PREFIX}{self.name}.plan.json"
        body = self.deployment.session().client("s3").get_object(Bucket=self.bucket, Key=key)["Body"].read()
        plan: dict[str, Any] = json.loads(body)
        say(
            f"{plan['messages']} messages, {plan['size_bytes']} bytes, at {plan['rate']} a second: "
            f"at least {duration(plan['seconds'])}"
        )
        for topic, count in plan["topics"].items():
            say(f"{count:>8}  {topic}")
        for reason, count in plan["left_out"].items():
            say(f"{count:>8}  excluded: {reason}")

    def _print_progress(self, line: str) -> None:
        """Print the progress, which the job reports as lines of JSON."""
        if not line.startswith("{"):
            say(line)
            return
        report = json.loads(line)
        if report.get("held"):
            say(
                f"about {report['held']} dead letters are in flight, received by another reader or a killed run: "
                f"--resume {self.name} in two minutes"
            )
        elif report.get("state") == "sending":
            say(f"{report['sent']} of {report['messages']} sent")


def _print_record(progress: ReplayProgress, *, as_json: bool) -> None:
    if as_json:
        print_json(progress.to_document())
        return
    print_fields(
        {
            "replay": str(progress.replay_id),
            "state": str(progress.state),
            "messages": str(progress.messages),
            "sent": str(progress.sent),
            "refused": str(progress.refused_count),
            "in doubt": str(len(progress.doubtful)),
        }
    )
    for origin, reason in progress.refused.items():
        say(f"refused: {origin}: {reason}")
    for origin in progress.doubtful:
        say(f"in doubt, possibly sent: {origin}")
