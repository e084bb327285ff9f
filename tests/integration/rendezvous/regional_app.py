"""A CDK app of tests: stages in three regions that share their proxies; rendezvous alone, with its grants.

A process of its own runs it, as the CDK runs its Node for as long as the process that imports it.
"""

import sys
from pathlib import Path
from typing import Any

from aws_cdk import App, CfnOutput, CliCredentialsStackSynthesizer, Environment, Stack
from aws_cdk import aws_dynamodb as dynamodb

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
from tests.integration.rendezvous.regions import NAMES


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


def synthesize(folder: Path) -> None:
    """Write the assembly with the stages of all regions."""
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


def _peer(region: str) -> str:
    peer = RendezvousPeer(region, NAMES[region], _table(region), "key", "snowflake-broker", "snowflake-client-")
    return ":".join(peer)


def _table(region: str) -> str:
    return f"{NAMES[region]}-rendezvous"


if __name__ == "__main__":
    synthesize(Path(sys.argv[1]))
