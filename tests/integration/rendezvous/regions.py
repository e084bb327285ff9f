"""Stages in three regions of one emulator that share their proxies: rendezvous alone, with its grants."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aws_cdk import App, CfnOutput, CliCredentialsStackSynthesizer, Environment, Stack
from aws_cdk import aws_dynamodb as dynamodb

from benchmarks.shared.sides import Side
from signalbox.aws.rendezvous.credentials import ClientCredentials, client_credentials
from signalbox.cli.shared.deployment import Deployment
from signalbox.local import cdk
from signalbox.local.emulator import lifecycle
from signalbox.local.files import write_json
from signalbox.local.session import stack_outputs
from signalbox.local.stage_folder import StageFolder
from stacks.grants.history import grant_delivery, grant_overflow
from stacks.grants.peers import grant_peers
from stacks.grants.rendezvous import grant_rendezvous
from stacks.history.lake import HistoryLake
from stacks.history.overflow import HistoryOverflow
from stacks.rendezvous.construct import Rendezvous
from stacks.settings.config import Config
from stacks.settings.context import read_config
from stacks.settings.peers import RendezvousPeer
from stacks.shared.function import program
from stacks.state_stack import StateStack

NAMES = {"eu-west-1": "region-eu", "us-west-2": "region-us", "ap-northeast-1": "region-ap"}
HOME, NEAR, FAR = NAMES


class RendezvousStack(Stack):
    """Rendezvous and its history, as `SignalboxStack` composes them."""

    def __init__(self, scope: App, config: Config, state: StateStack, **options: Any) -> None:
        super().__init__(scope, config.stage, **options)
        lake = HistoryLake(self, "HistoryLake", state=state, config=config)
        built, stream = program(self, config), lake.stream.delivery_stream_name
        rendezvous = Rendezvous(self, "Rendezvous", state=state, stream_name=stream, program=built, config=config)
        overflow = HistoryOverflow(self, "HistoryOverflow", lake=lake, state=state, program=built, config=config)
        writers = [function for name, function in rendezvous.functions.items() if name != "page"]
        overflow.connect_to(writers)
        grant_rendezvous(rendezvous, state=state, lake=lake, config=config)
        grant_peers(rendezvous, config)
        grant_delivery(lake, state=state)
        grant_overflow(overflow, writers=writers, state=state)
        outputs = {
            "BrokerQueueUrl": rendezvous.broker.queue.queue_url,
            "BrokerQueueArn": rendezvous.broker.queue.queue_arn,
            "DeadLetterQueueUrl": rendezvous.broker.dead_letters.queue_url,
            "RendezvousApiId": rendezvous.api.api.api_id,
            "RendezvousUrl": rendezvous.api.stage.url,
            "RendezvousTable": state.rendezvous_table.table_name,
            "ClientUserName": rendezvous.client_user.user_name,
            "ClientSecretArn": state.client_secret.secret_arn,
            "ClientQueuePrefix": config.client_queue_prefix,
            "RendezvousPeers": str(config.rendezvous_peers),
        }
        for name, value in outputs.items():
            CfnOutput(self, name, value=value)


def synthesize(folder: Path) -> Path:
    """Synthesize the stages of all regions; return the assembly."""
    app = App(outdir=str(folder))
    for region, stage in NAMES.items():
        config = read_config(
            {"stage": stage, "region": region, "local": True, "rendezvous_peers": ",".join(map(_peer, NAMES))}
        )
        options = {"env": Environment(region=region), "synthesizer": CliCredentialsStackSynthesizer()}
        state = StateStack(app, f"{stage}-state", config=config, **options)
        table = state.rendezvous_table.node.default_child
        assert isinstance(table, dynamodb.CfnTable)
        # By its name, the stages know one another from the first deployment on.
        table.table_name = _table(region)
        options["synthesizer"] = CliCredentialsStackSynthesizer()
        RendezvousStack(app, config, state, **options)
    app.synth()
    return folder


def _peer(region: str) -> str:
    peer = RendezvousPeer(region, NAMES[region], _table(region), "key", "snowflake-broker", "snowflake-client-")
    return ":".join(peer)


def _table(region: str) -> str:
    return f"{NAMES[region]}-rendezvous"


@dataclass(frozen=True, slots=True)
class RegionalStages:
    """The deployed stages, by region."""

    folder: StageFolder
    deployments: dict[str, Deployment]

    def key(self, region: str) -> ClientCredentials:
        """Return the key of a region's clients."""
        deployment = self.deployments[region]
        return client_credentials(deployment.session(), deployment.outputs)

    def side(self, region: str) -> Side:
        """Return the addresses and the client's key of a region."""
        deployment, key = self.deployments[region], self.key(region)
        return Side(
            name=region,
            broker_url=deployment.rendezvous_url,
            queue_name=deployment.outputs["BrokerQueueArn"].rpartition(":")[2],
            region=region,
            endpoint_url=str(deployment.endpoint_url),
            access_key_id=key.access_key_id,
            secret_access_key=key.secret_access_key,
        )

    @contextmanager
    def cut_off(self, region: str) -> Iterator[None]:
        """Let no AWS call to a region get a response, of whomever, until the block ends."""
        write_json(self.folder.outages, [region])
        try:
            yield
        finally:
            write_json(self.folder.outages, [])


def deploy(folder: StageFolder, assembly: Path, own: Deployment) -> RegionalStages:
    """Deploy the stages into the running emulator of another stage."""
    emulator = lifecycle.running(folder)
    assert emulator is not None
    for region in NAMES:
        cdk._make_assets_bucket(replace(emulator, region=region))
    cdk.deploy(assembly, emulator=emulator, say=lambda _: None)
    return RegionalStages(folder, {region: _deployment(own, region) for region in NAMES})


def _deployment(own: Deployment, region: str) -> Deployment:
    elsewhere = replace(own, region=region, folder=None, websocket_url="", realm="", tickets={})
    outputs = stack_outputs(elsewhere.session(), NAMES[region])
    url = f"{own.endpoint_url}/_aws/execute-api/{outputs['RendezvousApiId']}/$default/"
    return replace(elsewhere, outputs=outputs, rendezvous_url=url, stage=NAMES[region])
