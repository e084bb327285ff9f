"""The EKS cluster of a local stage: it exists in the emulator, and a Kubernetes API server may be attached to it."""

import json
from contextlib import suppress

import boto3

from signalbox.local.emulator.lifecycle import Emulator
from signalbox.local.emulator.program import ACCOUNT
from signalbox.local.files import write_json
from signalbox.local.kubernetes import Cluster
from signalbox.local.stage_folder import StageFolder

NAME = "local"
EKS = "eks.amazonaws.com"


def create_cluster(session: boto3.Session, name: str = NAME) -> None:
    """Create the cluster in the emulator unless it exists; nothing runs yet."""
    eks, iam = session.client("eks"), session.client("iam")
    with suppress(eks.exceptions.ResourceInUseException, iam.exceptions.EntityAlreadyExistsException):
        trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": EKS}}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        role = iam.create_role(RoleName=f"eks-{name}", AssumeRolePolicyDocument=document)["Role"]["Arn"]
        eks.create_cluster(name=name, roleArn=role, resourcesVpcConfig={}, accessConfig={"authenticationMode": "API"})


def token_reviews(emulator: Emulator, secret: str, name: str = NAME) -> str:
    """Return the URL at which the emulator reviews tokens for the cluster; it contains the secret."""
    return f"{emulator.endpoint_url}/_ministack/eks-auth/{ACCOUNT}/{emulator.region}/{name}/{secret}"


def attach(stage_folder: StageFolder, cluster: Cluster, secret: str, name: str = NAME) -> None:
    """Let DescribeCluster answer with this API server from now on, and let it review tokens with this secret."""
    attached = {"endpoint": cluster.endpoint, "ca": cluster.ca, "secret": secret}
    write_json(stage_folder.clusters, {name: attached})
