"""Stages in three regions of one emulator that share their proxies: rendezvous alone, with its grants."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.shared.sides import Side
from signalbox.aws.rendezvous.credentials import ClientCredentials, client_credentials
from signalbox.cli.shared.deployment import Deployment
from signalbox.local import cdk
from signalbox.local.emulator import lifecycle
from signalbox.local.files import CHECKOUT, write_json
from signalbox.local.session import stack_outputs
from signalbox.local.stage_folder import StageFolder

NAMES = {"eu-west-1": "region-eu", "us-west-2": "region-us", "ap-northeast-1": "region-ap"}
HOME, NEAR, FAR = NAMES
APP = "tests.integration.rendezvous.regional_app"


def synthesize(folder: Path) -> Path:
    """Synthesize the stages of all regions; return the assembly."""
    # `make check` validates the templates of all grants and constructs.
    environment = {**os.environ, "CDK_VALIDATION": "false"}
    command = [sys.executable, "-m", APP, str(folder)]
    subprocess.run(command, cwd=CHECKOUT, env=environment, check=True)  # noqa: S603 - our own app
    return folder


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
