"""`signalbox replay`: messages that were published before, once more."""

import json
import secrets
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from signalbox.cli.history.jobs import run_jobs
from signalbox.cli.shared.output import print_fields, print_json
from signalbox.cli.shared.stage import Aws, Json, Stage, duration, output, say
from signalbox.errors import RejectedError
from signalbox.history.jobs import REPLAYS

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment
    from signalbox.history.replay_state import Progress, ReplayId

ID_BYTES = 3


def replay(
    *,
    exchange: Annotated[
        str | None, typer.Option(help="Replay what was published to this live exchange.", metavar="EXCHANGE")
    ] = None,
    dead_letters: Annotated[
        str | None, typer.Option(help="Replay the dead letters of this exchange or queue.", metavar="NAME")
    ] = None,
    topics: Annotated[str | None, typer.Option(help="Only under keys that match; # if not given.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="Only from this moment on, in UTC.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="Only before this moment, in UTC.")] = None,
    into: Annotated[str | None, typer.Option(help="The exchange or queue that gets the messages.")] = None,
    rate: Annotated[int, typer.Option(help="Messages a second.", min=1, max=1_000)] = 100,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count only; --resume sends it later.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Send without asking.")] = False,
    replay_id: Annotated[
        str | None, typer.Option("--id", help="Name of the replay, which its messages carry; made if not given.")
    ] = None,
    resume: Annotated[str | None, typer.Option(help="Go on with this replay.", metavar="ID")] = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Publish again what was published before: marked, at a rate, and nothing twice; first, tell how much that is."""
    from signalbox.cli.shared.deployment import find_deployment

    asked = {"exchange": exchange, "dead_letters": dead_letters, "topics": topics, "from": start, "to": end}
    what = {name: text for name, text in {**asked, "into": into}.items() if text is not None}
    name = _checked(what, replay_id=replay_id, resume=resume)
    deployment = find_deployment(aws=aws, stage=stage)
    replays = _Replays(deployment, name, {"replay_id": name, "rate": str(rate)})
    if resume is None:
        replays.plan(what, sends=yes and not dry_run)
        if not (yes or as_json):
            replays.show_plan()
    if dry_run or not (yes or resume or _is_confirmed()):
        say(f"nothing is sent; `signalbox replay --resume {name}` does it")
    elif resume is not None or not yes:
        replays.send()
    _tell(replays.record(), as_json=as_json)


def _checked(what: Mapping[str, str], *, replay_id: str | None, resume: str | None) -> "ReplayId":
    """Return the replay's id. Refuses options that do not go together, before anything is started."""
    from signalbox.exchange.model.patterns import Pattern
    from signalbox.history.replay_state import parse_replay_id

    if resume is not None:
        if what or replay_id is not None:
            raise RejectedError("--resume goes on with a replay as it was asked for: give nothing of it again")
        return parse_replay_id(resume)
    if ("exchange" in what) == ("dead_letters" in what):
        raise RejectedError("give --exchange or --dead-letters: whence the messages come")
    if "into" not in what:
        raise RejectedError("give --into: the exchange or queue that gets the messages")
    Pattern.parse(what.get("topics", "#"))
    made = f"{datetime.now(UTC):%Y-%m-%d}-{secrets.token_hex(ID_BYTES)}"
    return parse_replay_id(replay_id or made)


class _Replays:
    """One replay on one stage."""

    def __init__(self, deployment: "Deployment", name: "ReplayId", arguments: Mapping[str, str]) -> None:
        self.deployment, self.name, self.arguments = deployment, name, arguments
        self.bucket = output(deployment, "HistoryBucket")

    def plan(self, what: Mapping[str, str], *, sends: bool) -> None:
        """Bring the log up to date, count what is asked for, and send it at once if nobody is to be asked."""
        of_log = {name: what[name] for name in ("exchange", "topics") if name in what}
        export = [("export_logs", of_log)] if "exchange" in what else []
        told = {**self.arguments, **what, "dry_run": "no" if sends else "yes"}
        run_jobs(self.deployment, [*export, ("replay", told)], self._hear)

    def send(self) -> None:
        """Send what is left."""
        run_jobs(self.deployment, [("replay", self.arguments)], self._hear)

    def record(self) -> "Progress":
        """Return how far the replay is."""
        from signalbox.aws.history.replay_records import S3Records

        found = S3Records(self.deployment.session().client("s3"), self.bucket, REPLAYS).load(self.name)
        if found is None:
            raise RejectedError(f"there is no replay {str(self.name)!r}")
        return found

    def show_plan(self) -> None:
        """Tell people how much would be sent."""
        key = f"{REPLAYS}{self.name}.plan.json"
        body = self.deployment.session().client("s3").get_object(Bucket=self.bucket, Key=key)["Body"].read()
        plan: dict[str, Any] = json.loads(body)
        say(
            f"{plan['messages']} messages, {plan['size_bytes']} bytes, at {plan['rate']} a second: "
            f"{duration(plan['seconds'])} at least"
        )
        for topic, count in plan["topics"].items():
            say(f"{count:>8}  {topic}")
        for reason, count in plan["left_out"].items():
            say(f"{count:>8}  left out: {reason}")

    def _hear(self, line: str) -> None:
        """Tell of progress, which the job prints as JSON."""
        if not line.startswith("{"):
            say(line)
            return
        told = json.loads(line)
        if told.get("held"):
            say(
                f"about {told['held']} letters are held by somebody else, or by a run that was killed: "
                f"--resume {self.name} in two minutes"
            )
        elif told.get("state") == "sending":
            say(f"{told['sent']} of {told['messages']} sent")


def _is_confirmed() -> bool:
    return sys.stdin.isatty() and typer.confirm("Send them?", err=True)


def _tell(progress: "Progress", *, as_json: bool) -> None:
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
        say(f"in doubt, perhaps sent: {origin}")
