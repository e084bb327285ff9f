"""The stages of a group of regions: `signalbox rendezvous peers`, and the stages that `--all` means."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

import typer

from signalbox.cli.shared.output import print_json, print_line
from signalbox.cli.shared.stage import Aws, Json, output, say
from signalbox.errors import RejectedError

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment

All = Annotated[
    bool, typer.Option("--all", help="Include the peers of the stage in other regions (setting rendezvous_peers).")
]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Regions(Generic[Value]):
    """The results by region, and the errors of the regions that are away."""

    found: dict[str, Value] = field(default_factory=dict)
    away: dict[str, str] = field(default_factory=dict)

    def report(self) -> None:
        """Name the regions that are away, and end the command with status 1 if there are any."""
        for region, error in self.away.items():
            say(f"{region} is left out: {error}")
        if self.away:
            raise typer.Exit(1)


def of_all_regions(deployment: "Deployment", read: Callable[["Deployment"], Value]) -> Regions[Value]:
    """Return the results of `read` for the stage and its peers; a peer that does not respond is left out."""
    from botocore.exceptions import BotoCoreError, ClientError

    from signalbox.cli.shared.aws_errors import explained

    regions: Regions[Value] = Regions({deployment.region: read(deployment)})
    for region, stage in _peers(deployment):
        try:
            regions.found[region] = read(deployment.in_region(region, stage=stage))
        except (ClientError, BotoCoreError) as error:
            regions.away[region] = explained(error)
        except RejectedError as error:
            regions.away[region] = str(error)
    return regions


def _peers(deployment: "Deployment") -> Iterator[tuple[str, str]]:
    from signalbox.rendezvous.rules.peer_address import parse_peers

    for peer in parse_peers(deployment.outputs.get("RendezvousPeers", "")):
        if peer.region != deployment.region:
            yield peer.region, peer.stage


def _split(stages: list[str]) -> Iterator[tuple[str, str]]:
    for each in stages:
        region, _, name = each.partition(":")
        if not region or not name:
            raise RejectedError(f"{each!r} is no stage: expected REGION:STAGE, such as eu-west-1:signalbox-eu")
        yield region, name


def peers(
    stages: Annotated[
        list[str], typer.Argument(help="The stages that are to share their proxies.", metavar="REGION:STAGE...")
    ],
    *,
    aws: Aws = False,
    as_json: Json = False,
) -> None:
    """Print the setting `rendezvous_peers` with which these stages share their proxies; it changes nothing."""
    from signalbox.cli.shared.deployment import Deployment, aws_session, find_deployment

    named = list(_split(stages))
    # A stage in AWS need not be in the region of the credentials: only those that the argument names are read.
    caller = Deployment({}, str(aws_session().region_name), "") if aws else find_deployment()
    found = [caller.in_region(region, stage=name) for region, name in named]
    setting = ",".join(output(each, "RendezvousPeer") for each in found)
    if as_json:
        print_json({"rendezvous_peers": setting})
    else:
        print_line(f"rendezvous_peers={setting}")
        say("deploy each of these stages with this setting, the same for all: `signalbox deploy -c rendezvous_peers=…`")
