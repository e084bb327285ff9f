"""Customer-managed keys whose policies name every action."""

from collections.abc import Sequence

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

USE = (
    "kms:Encrypt",
    "kms:Decrypt",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
    "kms:GenerateDataKey",
    # DynamoDB's guide demands `kms:GenerateDataKey*`, which is this action and the one before.
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:DescribeKey",
)
ADMINISTER = (
    "kms:CancelKeyDeletion",
    "kms:DescribeKey",
    "kms:DisableKey",
    "kms:DisableKeyRotation",
    "kms:EnableKey",
    "kms:EnableKeyRotation",
    "kms:GetKeyPolicy",
    "kms:GetKeyRotationStatus",
    "kms:ListGrants",
    "kms:ListKeyPolicies",
    "kms:ListResourceTags",
    "kms:PutKeyPolicy",
    "kms:RevokeGrant",
    "kms:ScheduleKeyDeletion",
    "kms:TagResource",
    "kms:UntagResource",
    "kms:UpdateKeyDescription",
)


class Key(kms.Key):
    """A rotating KMS key that the account administers; IAM policies grant its use through named services."""

    def __init__(
        self, scope: Construct, name: str, *, description: str, services: Sequence[str], removal: RemovalPolicy
    ) -> None:
        super().__init__(
            scope,
            name,
            description=description,
            enable_key_rotation=True,
            removal_policy=removal,
            policy=iam.PolicyDocument(statements=[_administration(), _use_through(services), _attachment()]),
        )

    def serve_logs(self) -> None:
        """Allow CloudWatch Logs to encrypt this account's log groups with the key."""
        groups = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:log-group:*"
        self.add_to_resource_policy(
            iam.PolicyStatement(
                sid="LogGroups",
                principals=[iam.ServicePrincipal(f"logs.{Aws.REGION}.amazonaws.com")],
                actions=list(USE),
                resources=["*"],
                conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
            )
        )


def through(service: str) -> dict[str, dict[str, str]]:
    """Return the condition that a key is used through a service of this region, never directly."""
    return {"StringEquals": {"kms:ViaService": f"{service}.{Aws.REGION}.amazonaws.com"}}


def _administration() -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid="Administration",
        principals=[iam.AccountRootPrincipal()],
        actions=list(ADMINISTER),
        resources=["*"],  # in a key's own policy: this key
    )


def _use_through(services: Sequence[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid="UseThroughServices",
        principals=[iam.AccountRootPrincipal()],
        actions=list(USE),
        resources=["*"],
        conditions={"StringEquals": {"kms:ViaService": [f"{name}.{Aws.REGION}.amazonaws.com" for name in services]}},
    )


def _attachment() -> iam.PolicyStatement:
    # DynamoDB and Firehose create a grant when a table or a stream is created with the key.
    return iam.PolicyStatement(
        sid="AttachmentByServices",
        principals=[iam.AccountRootPrincipal()],
        actions=["kms:CreateGrant"],
        resources=["*"],
        conditions={"Bool": {"kms:GrantIsForAWSResource": "true"}},
    )
