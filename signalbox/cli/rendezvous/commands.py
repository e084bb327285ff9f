"""`signalbox rendezvous`: what clients need to reach the broker, and how it does."""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.shared.output import print_fields, print_json, print_line
from signalbox.errors import RejectedError
from signalbox.rendezvous.wire.bridges import DEFAULT_FINGERPRINT
from signalbox.rendezvous.wire.nat import Nat

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment
    from signalbox.clients.rendezvous.client import Progress

app = typer.Typer(help="Bring Snowflake clients and proxies together.", no_args_is_help=True)

Aws = Annotated[bool, typer.Option("--aws", help="A stage in AWS, by your standard credentials, not the local one.")]
Stage = Annotated[str, typer.Option(help="Name of the stage in AWS.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Rotate = Annotated[bool, typer.Option("--rotate", help="Make a new key; the previous works until the next.")]
Revoke = Annotated[
    bool, typer.Option("--revoke", help="Delete all keys: no client gets in; needed before the stack is deleted.")
]
Sdp = Annotated[
    Path | None, typer.Option(help="File with the offer: SDP, or JSON with `type` and `sdp`; `-` for standard input.")
]


@app.command()
def credentials(
    *,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
    rotate: Rotate = False,
    revoke: Revoke = False,
) -> None:
    """Print what a Snowflake client needs: queue URL, encoded credentials, and its argument line."""
    from signalbox.aws.rendezvous.credentials import client_credentials, revoke_client_credentials
    from signalbox.cli.shared.deployment import find_deployment

    deployment = find_deployment(aws=aws, stage=stage)
    if revoke:
        print_line(f"{revoke_client_credentials(deployment.session(), deployment.outputs)} deleted")
        return
    key = client_credentials(deployment.session(), deployment.outputs, rotate=rotate)
    queue_url = sqsqueue(deployment.outputs)
    shown = {
        "sqsqueue": queue_url,
        "sqscreds": key.sqscreds,
        "arguments": f"-sqsqueue {queue_url} -sqscreds {key.sqscreds}",
        "bridge_line": _bridge_line(queue_url, key.sqscreds),
    }
    if deployment.endpoint_url:
        # The real client takes the queue's region from an amazonaws.com URL and nothing else (rendezvous_sqs.go).
        shown["environment"] = f"AWS_ENDPOINT_URL_SQS={deployment.endpoint_url}"
    if as_json:
        print_json(shown)
    else:
        print_fields(shown)


def sqsqueue(outputs: Mapping[str, str]) -> str:
    """Return the broker queue's URL in the one form that the real client takes."""
    _, _, _, region, account, name = outputs["BrokerQueueArn"].split(":")
    return f"https://sqs.{region}.amazonaws.com/{account}/{name}"


def _bridge_line(queue_url: str, sqscreds: str) -> str:
    # The address is a placeholder that Tor needs and Snowflake does not look at.
    arguments = f"fingerprint={DEFAULT_FINGERPRINT} sqsqueue={queue_url} sqscreds={sqscreds}"
    return f"Bridge snowflake 192.0.2.5:80 {DEFAULT_FINGERPRINT} {arguments}"


@app.command()
def offer(
    *,
    sdp: Sdp = None,
    nat: Annotated[Nat, typer.Option(help="NAT type of the client.")] = Nat.UNKNOWN,
    fingerprint: Annotated[str, typer.Option(help="Fingerprint of the bridge.")] = DEFAULT_FINGERPRINT,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Send an offer as a client would and print the answer; without --sdp a made-up offer is sent."""
    from signalbox.aws.rendezvous.credentials import client_credentials
    from signalbox.cli.shared.deployment import find_deployment
    from signalbox.clients.rendezvous.client import SqsRendezvous
    from signalbox.rendezvous.wire.offer import offer_body

    deployment = find_deployment(aws=aws, stage=stage)
    description = session_description(sdp)
    key = client_credentials(deployment.session(), deployment.outputs)
    rendezvous = SqsRendezvous(
        deployment.session_of(key).client("sqs"),
        deployment.outputs["BrokerQueueUrl"],
        client_queue_prefix=deployment.outputs["ClientQueuePrefix"],
    )
    answer = rendezvous.exchange(offer_body(description, nat, fingerprint=fingerprint), on_progress=_say)
    if as_json:
        seconds = answer.after.total_seconds()
        print_json({"answer": answer.session_description, "client_id": answer.client_id, "seconds": round(seconds, 3)})
    else:
        print_line(answer.session_description)


def session_description(sdp: Path | None) -> str:
    """Return the offer of a file as JSON: it may hold that already, or bare SDP."""
    import json
    import secrets

    from signalbox.clients.rendezvous.simulator import sample_offer

    if sdp is None:
        return sample_offer(secrets.token_hex(8))
    try:
        text = (sys.stdin.buffer.read() if str(sdp) == "-" else sdp.read_bytes()).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise RejectedError(f"cannot read the offer from {str(sdp)!r}: {error}") from error
    if not text.strip():
        raise RejectedError(f"{str(sdp)!r} is empty; expected SDP, or JSON with `type` and `sdp`")
    return text if text.lstrip().startswith("{") else json.dumps({"type": "offer", "sdp": text})


def _say(progress: "Progress") -> None:
    from signalbox.clients.rendezvous.client import QueueFound, Sent

    if isinstance(progress, Sent):
        text = f"offer sent, client id {progress.client_id}"
    elif isinstance(progress, QueueFound):
        text = f"the broker has taken it ({_seconds(progress.after)})"
    else:
        text = f"answered ({_seconds(progress.after)})"
    sys.stderr.write(f"· {text}\n")


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():.2f} s"


@app.command()
def proxy(
    *,
    nat: Annotated[Nat, typer.Option(help="NAT type of the proxy.")] = Nat.UNRESTRICTED,
    proxy_type: Annotated[str, typer.Option("--type", help="Type that the proxy says it has.")] = "standalone",
    rounds: Annotated[int, typer.Option(help="Polls to make.", min=1)] = 1,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Poll as a simulated proxy would, and answer with a made-up session: to try a stage by hand, never for users."""
    from signalbox.cli.shared.deployment import find_deployment
    from signalbox.clients.rendezvous.simulator import ProxySimulator

    deployment = find_deployment(aws=aws, stage=stage)
    simulator = ProxySimulator(deployment.rendezvous_url, nat=nat, proxy_type=proxy_type)
    for _ in range(rounds):
        served = simulator.serve_once()
        status = served.response.status if served.response else "no response"
        if as_json:
            print_json({"sid": served.sid, "status": status, "accepted": served.accepted})
        else:
            print_line(f"{status}{_outcome(served.accepted)}")


def _outcome(accepted: bool | None) -> str:  # noqa: FBT001 - it has three values
    if accepted is None:
        return ""
    return ": answered" if accepted else ": answered, but the client was gone"


@app.command()
def stats(
    *,
    day: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="UTC day; today if not given.")] = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Print a day's statistics as upstream's metrics log has them; the Glue job makes the same of the history."""
    from signalbox.cli.shared.deployment import find_deployment
    from signalbox.rendezvous.reporting.statistics import DayStatistics, log_block

    chosen = (day or datetime.now(UTC)).date()
    counters = _counters(find_deployment(aws=aws, stage=stage), chosen.isoformat())
    statistics = DayStatistics.from_counters(counters, chosen)
    if as_json:
        print_json({"day": chosen.isoformat(), "counters": counters})
    else:
        print_line(log_block(statistics, end=statistics.end).rstrip("\n"))


def _counters(deployment: "Deployment", day: str) -> Mapping[str, int]:
    from datetime import date

    from signalbox.aws.rendezvous.statistics import DynamoStatistics

    table = deployment.session().resource("dynamodb").Table(deployment.outputs["RendezvousTable"])
    return DynamoStatistics(table).counters(date.fromisoformat(day))
