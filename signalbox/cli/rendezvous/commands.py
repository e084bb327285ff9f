"""The commands `signalbox rendezvous`: test offers and polls, and statistics."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.rendezvous.credentials import client_key, credentials, fingerprints
from signalbox.cli.shared.days import METAVAR, past_day, today
from signalbox.cli.shared.files import read_text
from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_json, print_line, print_text
from signalbox.cli.shared.stage import OutputOptions, output, say
from signalbox.errors import RejectedError
from signalbox.rendezvous.reporting.statistics import DayStatistics
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment

app = CommandGroup("Connect Snowflake clients and proxies.")
app.command()(credentials)

Sdp = Annotated[
    Path | None, typer.Option(help="File with the offer: SDP, or JSON with `type` and `sdp`; `-` for standard input.")
]


@app.command()
def offer(
    *,
    sdp: Sdp = None,
    nat: Annotated[Nat, typer.Option(help="NAT type of the client.")] = Nat.UNKNOWN,
    fingerprint: Annotated[
        str | None, typer.Option(help="Fingerprint of the bridge; default: the first of the stage's list.")
    ] = None,
    options: OutputOptions,
) -> None:
    """Send an offer as a client does and print the answer; without --sdp, send a sample offer."""
    from signalbox.flows.rendezvous import sqs_rendezvous

    deployment = options.deployment()
    description = session_description(sdp)
    rendezvous = sqs_rendezvous(deployment, client_key(deployment))
    bridge = fingerprint or fingerprints(deployment.outputs)[0]
    answer = rendezvous.exchange(offer_body(description, nat, fingerprint=bridge), on_progress=say)
    if options.as_json:
        seconds = answer.after.total_seconds()
        print_json({"answer": answer.session_description, "client_id": answer.client_id, "seconds": round(seconds, 3)})
    else:
        print_line(answer.session_description)


def session_description(sdp: Path | None) -> str:
    """Return the offer of a file with JSON or SDP as JSON; without a file, return a sample offer."""
    import json
    import secrets

    from signalbox.clients.rendezvous.simulator import sample_offer

    if sdp is None:
        return sample_offer(secrets.token_hex(8))
    text = read_text(sdp)
    if not text.strip():
        raise RejectedError(f"{str(sdp)!r} is empty; expected SDP, or JSON with `type` and `sdp`")
    return text if text.lstrip().startswith("{") else json.dumps({"type": "offer", "sdp": text})


@app.command()
def proxy(
    *,
    nat: Annotated[Nat, typer.Option(help="NAT type of the proxy.")] = Nat.UNRESTRICTED,
    proxy_type: Annotated[str, typer.Option("--type", help="Type that the proxy reports.")] = "standalone",
    rounds: Annotated[
        int | None,
        typer.Option(help="Number of polls; by default it polls until there is a client, for a minute at most.", min=1),
    ] = None,
    options: OutputOptions,
) -> None:
    """Poll as a simulated proxy and answer with a sample session description; only for manual tests of a stage."""
    from signalbox.clients.rendezvous.simulator import ProxySimulator

    deployment = options.deployment()
    output(deployment, "RendezvousUrl")  # named in the error of a stage without rendezvous
    simulator = ProxySimulator(deployment.rendezvous_url, nat=nat, proxy_type=proxy_type)
    serve = simulator.serve if rounds is None else simulator.serve_once
    for _ in range(rounds or 1):
        served = serve()
        status = served.response.status
        if options.as_json:
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
    day: Annotated[
        str | None,
        typer.Option(help="UTC day, such as 2026-11-23, or `yesterday`; default: today.", metavar=METAVAR),
    ] = None,
    options: OutputOptions,
) -> None:
    """Print a day's statistics in the format of upstream's metrics log, as the Glue job does from the history."""
    chosen = past_day(day, "--day") or today()
    _check_kept(chosen)
    deployment = options.deployment()
    _print_statistics(chosen, _counters(deployment, chosen), as_json=options.as_json)


def _print_statistics(day: date, counters: Mapping[str, int], *, as_json: bool) -> None:
    if as_json:
        print_json({"day": day.isoformat(), "counters": counters})
        return
    print_text(DayStatistics.from_counters(counters, day).log_block().rstrip("\n"))
    if not counters:
        say(f"nothing was counted on {day}")


def _check_kept(day: date) -> None:
    """Raise `RejectedError` for a day whose counters are deleted."""
    from signalbox.aws.rendezvous.statistics import COUNTERS_KEPT_FOR

    if today() - day > COUNTERS_KEPT_FOR:
        raise RejectedError(
            f"counters are kept for {COUNTERS_KEPT_FOR.days} days, not since {day}: "
            f"`signalbox report rendezvous --from {day}` makes the statistics from the history"
        )


def _counters(deployment: "Deployment", day: date) -> Mapping[str, int]:
    from signalbox.aws.rendezvous.statistics import DynamoStatistics
    from signalbox.aws.shared.dynamodb import DynamoTable

    table = DynamoTable(deployment.session().client("dynamodb"), deployment.outputs["RendezvousTable"])
    return DynamoStatistics(table).counters(day)
