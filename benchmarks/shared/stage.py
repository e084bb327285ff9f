"""The stage of a benchmark: an emulator with the app deployed into it, removed when the run ends."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.shared.sides import SIGNALBOX, UPSTREAM, Side
from signalbox.clients.deployment import Deployment, local_deployment
from signalbox.local import stage
from signalbox.local.emulator import lifecycle
from signalbox.local.files import CHECKOUT
from signalbox.local.processes import processes_naming
from signalbox.local.stage_folder import StageFolder

FOLDER = CHECKOUT / ".signalbox" / "benchmarks"
# Upstream's cleanup deletes every queue whose name begins with `snowflake-client-`. In another region it finds only
# queues of its own.
UPSTREAM_REGION = "us-west-2"
UPSTREAM_QUEUE = "snowflake-broker-upstream"
# The handler of a function is lambdas.rendezvous.<name>.handler.
HANDLERS = "lambdas.rendezvous."


@dataclass(frozen=True, slots=True)
class Stage:
    """A running stage."""

    local: Mapping[str, Any]

    @property
    def deployment(self) -> Deployment:
        """Return the stage as a deployment of the CLI."""
        return local_deployment(self.local, folder=FOLDER)

    def signalbox(self) -> Side:
        """Return Signalbox as a side, with the limited client's credentials."""
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
        """Return the functions of rendezvous: names in AWS by module names."""
        pages = self.deployment.session().client("lambda").get_paginator("list_functions").paginate()
        handlers = {f["Handler"]: f["FunctionName"] for page in pages for f in page["Functions"]}
        return {
            handler.removeprefix(HANDLERS).removesuffix(".handler"): name
            for handler, name in handlers.items()
            if handler.startswith(HANDLERS)
        }

    def redirect(self, function: str, endpoint_url: str) -> None:
        """Set the endpoint that a function's AWS calls go to."""
        client = self.deployment.session().client("lambda")
        variables = client.get_function_configuration(FunctionName=function)["Environment"]["Variables"]
        client.update_function_configuration(
            FunctionName=function, Environment={"Variables": {**variables, "AWS_ENDPOINT_URL": endpoint_url}}
        )

    def client_queues(self, side: Side) -> list[str]:
        """Return the URLs of the current client queues of a side."""
        sqs = self.deployment.session().client("sqs", region_name=side.region)
        pages = sqs.get_paginator("list_queues").paginate(QueueNamePrefix=self.local["outputs"]["ClientQueuePrefix"])
        return [url for page in pages for url in page.get("QueueUrls", [])]


def function_processes() -> list[int]:
    """Return the processes of the functions of the running stage."""
    return processes_naming(f"{StageFolder(FOLDER).temporary}{os.sep}ministack-lambda-")


@contextmanager
def running_stage(*, port: int, context: Sequence[str] = ()) -> Iterator[Stage]:
    """Deploy the app, with these settings, into a new emulator, which ends when this process ends or is killed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    state = StageFolder(FOLDER)
    with lifecycle.lifeline() as lifeline:
        try:
            yield Stage(stage.up(state, port=port, fresh=True, lifeline=lifeline, context=context))
        finally:
            stage.down(state)
