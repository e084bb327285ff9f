"""A stage of the benchmark's own: an emulator with the app deployed into it, gone when the run ends."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.shared.sides import SIGNALBOX, UPSTREAM, Side
from signalbox.cli.shared.deployment import Deployment, local_deployment
from signalbox.local import stage
from signalbox.local.files import CHECKOUT
from signalbox.local.stage_folder import StageFolder

FOLDER = CHECKOUT / ".signalbox" / "benchmarks"
# Upstream's cleanup takes every queue that begins with `snowflake-client-`: in another region it finds only its own.
UPSTREAM_REGION = "us-west-2"
UPSTREAM_QUEUE = "snowflake-broker-upstream"
# Given to a function by its handler: lambdas.rendezvous.<name>.handler.
HANDLERS = "lambdas.rendezvous."


@dataclass(frozen=True, slots=True)
class Stage:
    """A running stage."""

    local: Mapping[str, Any]

    @property
    def deployment(self) -> Deployment:
        """Return the stage as the commands see it."""
        return local_deployment(self.local)

    def signalbox(self) -> Side:
        """Return Signalbox, with the limited client's credentials."""
        client = self.local["client_credentials"]
        return Side(
            name=SIGNALBOX,
            broker_url=self.local["rendezvous_url"],
            queue_name=self.local["outputs"]["BrokerQueueName"],
            region=self.local["region"],
            endpoint_url=self.local["endpoint_url"],
            access_key_id=client["access_key_id"],
            secret_access_key=client["secret_access_key"],
        )

    def upstream(self) -> Side:
        """Return upstream's broker on the same emulator, before it is started; its broker_url is empty."""
        return Side(
            name=UPSTREAM,
            broker_url="",
            queue_name=UPSTREAM_QUEUE,
            region=UPSTREAM_REGION,
            endpoint_url=self.local["endpoint_url"],
            **self.local["admin_credentials"],
        )

    def functions(self) -> dict[str, str]:
        """Return the functions of rendezvous: the short name and the one in AWS."""
        pages = self.deployment.session().client("lambda").get_paginator("list_functions").paginate()
        handlers = {f["Handler"]: f["FunctionName"] for page in pages for f in page["Functions"]}
        return {
            handler.removeprefix(HANDLERS).removesuffix(".handler"): name
            for handler, name in handlers.items()
            if handler.startswith(HANDLERS)
        }

    def redirect(self, function: str, endpoint_url: str) -> None:
        """Let a function make its AWS calls at another endpoint."""
        client = self.deployment.session().client("lambda")
        variables = client.get_function_configuration(FunctionName=function)["Environment"]["Variables"]
        client.update_function_configuration(
            FunctionName=function, Environment={"Variables": {**variables, "AWS_ENDPOINT_URL": endpoint_url}}
        )

    def client_queues(self, side: Side) -> list[str]:
        """Return the client queues that a side has now."""
        sqs = self.deployment.session().client("sqs", region_name=side.region)
        pages = sqs.get_paginator("list_queues").paginate(QueueNamePrefix=self.local["outputs"]["ClientQueuePrefix"])
        return [url for page in pages for url in page.get("QueueUrls", [])]


@contextmanager
def running_stage(*, port: int) -> Iterator[Stage]:
    """Deploy the app into an emulator of its own, which ends with this process however that ends."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    state = StageFolder(FOLDER)
    lifeline, held = os.pipe()
    try:
        yield Stage(stage.up(state, port=port, fresh=True, lifeline=lifeline))
    finally:
        stage.down(state)
        os.close(lifeline)
        os.close(held)
