"""Stages on an emulator of their own, which are deployed, broken, deleted and deployed again; and their users."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3

from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.aws.exchange.users import ExchangeUsers
from signalbox.aws.rendezvous.credentials import ClientCredentials, revoke_client_credentials
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.clients.deployment import Deployment, local_deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.stage_session import stack_outputs
from signalbox.exchange.model.records import User
from signalbox.local import cdk, eks, stage, tools
from signalbox.local.assembly.artifacts import DefaultPlace, artifacts_of, assets
from signalbox.local.emulator import lifecycle, program
from signalbox.local.stage_folder import StageFolder
from signalbox.queues import STAGE_TAG
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role

BROKEN, TAKEN = "Broken", "a-name-that-is-taken"
GONE_SECONDS = 120


def silent(_: str) -> None:
    """Report no progress."""


def synthesized(folder: Path, *context: str) -> Path:
    """Synthesize a local stage with these settings; return the assembly."""
    cdk.synthesize(folder, context=stage.local_context(context), say=silent)
    return folder


def broken(assembly: Path, folder: Path, *, stack: str) -> Path:
    """Return a copy of an assembly whose stack ends in a resource that cannot be created, after all others."""
    shutil.copytree(assembly, folder)
    template_file = folder / f"{stack}.template.json"
    template = json.loads(template_file.read_text())
    template["Resources"][BROKEN] = {
        "Type": "AWS::Glue::Database",
        "Properties": {"CatalogId": program.ACCOUNT, "DatabaseInput": {"Name": TAKEN}},
        "DependsOn": sorted(template["Resources"]),
    }
    template_file.write_text(json.dumps(template))
    # The CDK uploads a template under the hash of its text, once.
    assets = json.loads((folder / f"{stack}.assets.json").read_text())
    (digest,) = (key for key, file in assets["files"].items() if file["source"]["path"] == template_file.name)
    for file in (folder / "manifest.json", folder / f"{stack}.assets.json"):
        file.write_text(file.read_text().replace(digest, digest[::-1]))
    return folder


@dataclass(frozen=True, slots=True)
class Stages:
    """The emulator of a folder, and what is deployed into it."""

    folder: StageFolder
    lifeline: int

    @classmethod
    @contextmanager
    def started(cls, path: Path) -> Iterator["Stages"]:
        """Start an emulator; it ends with the block, even if the test run is killed."""
        folder = StageFolder(path)
        with lifecycle.lifeline() as lifeline:
            try:
                running = lifecycle.start(folder, port=0, lifeline=lifeline)
                eks.create_cluster(running.session())  # as `stage.up` does: it belongs to the account, not to a stage
                yield cls(folder, lifeline)
            finally:
                lifecycle.stop(folder)

    @property
    def session(self) -> boto3.Session:
        """The administrator's session."""
        return self._emulator.session()

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of a program that takes the emulator for AWS."""
        running = self._emulator
        return {
            "AWS_ENDPOINT_URL": running.endpoint_url,
            "AWS_REGION": running.region,
            "AWS_ACCESS_KEY_ID": running.administrator.access_key_id,
            "AWS_SECRET_ACCESS_KEY": running.administrator.secret_access_key,
        }

    def restart(self) -> None:
        """Restart the emulator with its state, as `make up` does with one of another version."""
        lifecycle.restart(self.folder, self._emulator, lifeline=self.lifeline)

    def deploy(self, assembly: Path) -> Deployment:
        """Deploy the stage of `local.json`, as `make up` does."""
        return local_deployment(stage.up(self.folder, assembly=assembly), folder=self.folder.path)

    def deploy_more(self, assembly: Path, name: str, *, like: Deployment) -> Deployment:
        """Deploy another stage into the same account and region."""
        self.deploy_by_cdk(assembly)
        return replace(like, outputs=stack_outputs(self.session, name), realm="", tickets={})

    def deploy_by_cdk(self, assembly: Path) -> None:
        """Deploy an assembly by the CDK CLI, as into AWS."""
        cdk.bootstrap(self._emulator)
        own = {**self.environment, "CI": "true"}
        command = [*tools.cdk(), "deploy", "--app", str(assembly), "--all", "--require-approval", "never"]
        environment = {**tools.hermetic_environment(os.environ), **own}
        done = subprocess.run(  # noqa: S603 - the CDK CLI
            [*command, "--no-notices"], cwd=assembly, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def deployed(self, assembly: Path) -> dict[str, object]:
        """Return the events and the outputs of each stack of an assembly, and the time of each object of its assets."""
        found: dict[str, object] = {}
        cloudformation, s3 = self.session.client("cloudformation"), self.session.client("s3")
        for name in cdk.stacks(assembly):
            pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=name)
            events = sorted(event["EventId"] for page in pages for event in page["StackEvents"])
            found[name] = (events, stack_outputs(self.session, name))
        for asset in assets(assembly, artifacts_of(assembly), DefaultPlace(program.ACCOUNT, self._emulator.region)):
            found[asset.key] = s3.head_object(Bucket=asset.bucket, Key=asset.key)["LastModified"]
        return found

    def deploy_again(self, assembly: Path) -> None:
        """Deploy an assembly as `make up` does, without users."""
        cdk.deploy(assembly, emulator=self._emulator, say=silent)

    def try_to_deploy(self, assembly: Path) -> str:
        """Deploy a broken assembly; return the error."""
        self.session.client("glue").create_database(DatabaseInput={"Name": TAKEN})
        try:
            cdk.deploy(assembly, emulator=self._emulator, say=silent)
        except cdk.UnavailableError as error:
            return str(error)
        finally:
            self.session.client("glue").delete_database(Name=TAKEN)
        raise AssertionError("the broken assembly was deployed")

    def delete(self, deployment: Deployment, name: str) -> None:
        """Delete a stack as the page on operations says."""
        revoke_client_credentials(self.session, deployment.outputs)
        cloudformation = self.session.client("cloudformation")
        cloudformation.delete_stack(StackName=name)
        waiter = cloudformation.get_waiter("stack_delete_complete")
        waiter.wait(StackName=name, WaiterConfig={"Delay": 1, "MaxAttempts": GONE_SECONDS})

    def status(self, name: str) -> str:
        """Return a stack's status."""
        cloudformation = self.session.client("cloudformation")
        return str(cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])

    @property
    def _emulator(self) -> lifecycle.Emulator:
        running = lifecycle.running(self.folder)
        assert running is not None
        return running


@contextmanager
def created_user(deployment: Deployment, name: UserName) -> Iterator[ExchangeClient]:
    """Create a user with a key, and provide a client with that key alone. The user stays."""
    session, outputs = deployment.session(), deployment.outputs
    users = ExchangeUsers.of(session, outputs)
    user_id = users.make(name, Role.SOURCE, Ownership.STRICT)
    table = DynamoTable(session.client("dynamodb"), outputs["ExchangeTable"])
    DynamoUsers(table).put(User(name, Role.SOURCE, Ownership.STRICT, datetime.now(UTC), user_id))
    key = users.new_key(name)
    sqs = deployment.session_of(ClientCredentials(key.access_key_id, key.secret_access_key)).client("sqs")
    url_prefix = outputs["ExchangeControlQueueUrl"].rpartition("/")[0] + "/"
    client = ExchangeClient(sqs, users.control_queues.names, url_prefix, name)
    yield client


def run_task(deployment: Deployment, output: str, task: str) -> Any:
    """Run a scheduled task of a function now; return its result."""
    functions = deployment.session().client("lambda")
    called = functions.invoke(FunctionName=deployment.outputs[output], Payload=json.dumps({"task": task}))
    assert "FunctionError" not in called, called["Payload"].read()
    return json.loads(called["Payload"].read())


def mappings(session: boto3.Session) -> dict[tuple[str, str], str]:
    """Return the ids of all event source mappings by queue and function."""
    pages = session.client("lambda").get_paginator("list_event_source_mappings").paginate()
    found = (one for page in pages for one in page["EventSourceMappings"])
    return {(_last(one["EventSourceArn"]), _last(one["FunctionArn"])): one["UUID"] for one in found}


def functions(session: boto3.Session) -> set[str]:
    """Return the names of all functions."""
    pages = session.client("lambda").get_paginator("list_functions").paginate()
    return {one["FunctionName"] for page in pages for one in page["Functions"]}


def resources(session: boto3.Session) -> set[tuple[str, str]]:
    """Return the kind and name of everything in the account; keys without those in deletion."""
    iam, kms, ssm = (session.client(name) for name in ("iam", "kms", "ssm"))
    found: dict[str, list[str]] = {
        "queue": [_last(url, "/") for url in session.client("sqs").list_queues().get("QueueUrls", [])],
        "function": sorted(functions(session)),
        "mapping": sorted(map(str, mappings(session))),
        "user": [one["UserName"] for one in iam.list_users()["Users"]],
        "role": [one["RoleName"] for one in iam.list_roles()["Roles"]],
        "policy": [one["PolicyName"] for one in iam.list_policies(Scope="Local")["Policies"]],
        "table": session.client("dynamodb").list_tables()["TableNames"],
        "bucket": [one["Name"] for one in session.client("s3").list_buckets()["Buckets"]],
        "database": [one["Name"] for one in session.client("glue").get_databases()["DatabaseList"]],
        "job": [one["Name"] for one in session.client("glue").get_jobs()["Jobs"]],
        "log group": [one["logGroupName"] for one in session.client("logs").describe_log_groups()["logGroups"]],
        "schedule group": [one["Name"] for one in session.client("scheduler").list_schedule_groups()["ScheduleGroups"]],
        "schedule": [one["Name"] for one in session.client("scheduler").list_schedules()["Schedules"]],
        "stream": session.client("firehose").list_delivery_streams()["DeliveryStreamNames"],
        "api": [
            f"{one['ApiId']} {one.get('Tags', {}).get(STAGE_TAG)}"
            for one in session.client("apigatewayv2").get_apis()["Items"]
        ],
        "alarm": [one["AlarmName"] for one in session.client("cloudwatch").describe_alarms()["MetricAlarms"]],
        "key": [
            f"{key['KeyId']} {_tags(kms.list_resource_tags(KeyId=key['KeyId'])['Tags']).get(STAGE_TAG)}"
            for key in kms.list_keys()["Keys"]
            if kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]["KeyState"] != "PendingDeletion"
        ],
        "parameter": [one["Name"] for one in ssm.describe_parameters()["Parameters"]],
    }
    return {(kind, name) for kind, names in found.items() for name in names}


def _tags(listed: list[dict[str, str]]) -> dict[str, str]:
    return {tag["TagKey"]: tag["TagValue"] for tag in listed}


def _last(text: str, separator: str = ":") -> str:
    return text.rpartition(separator)[2]
