"""The plan of a removal: which resources belong to a stage, in which order they are removed, and what stays."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from signalbox.queues import CAPABILITY_TAG, STAGE_TAG

STATE_SUFFIX = "-state"
# CloudFormation sets this tag on the resources of a stack, which it deletes itself.
STACK_TAG = "aws:cloudformation:stack-name"


class Kind(StrEnum):
    """The kinds of resources, in the order of their removal.

    Splits end while their functions run. Keys and attached policies would make CloudFormation fail to delete their
    users and policies. All else follows the stack, whose functions create nothing more from then on.
    """

    SESSION = "session of a split"
    CLIENT_KEY = "access key of Snowflake clients"
    ATTACHMENT = "attachment of a policy"
    STACK = "stack"
    MAPPING = "event source mapping"
    QUEUE = "queue"
    USER = "IAM user"
    LOG_GROUP = "log group"
    TABLE = "table"
    DATABASE = "Glue database"
    BUCKET = "bucket"
    STATE_STACK = "state stack"
    KEY = "KMS key"


# The types of the state stack's resources that CloudFormation retains, or cannot delete while they hold data.
DATA_TYPES = {
    "AWS::DynamoDB::Table": Kind.TABLE,
    "AWS::Glue::Database": Kind.DATABASE,
    "AWS::S3::Bucket": Kind.BUCKET,
    "AWS::KMS::Key": Kind.KEY,
}
WHY_IT_STAYS = {
    Kind.TABLE: "records of exchanges, queues, users, splits and live; a new deployment uses it again",
    Kind.DATABASE: "catalog of the history's tables",
    Kind.BUCKET: "history and reports",
    Kind.KEY: "decrypts the tables, the bucket and messages in queues",
    Kind.STATE_STACK: "describes the resources above, and has the URLs of rendezvous, which are closed",
}


@dataclass(frozen=True, slots=True)
class Item:
    """A resource to remove: `name` is for people, `identifier` for AWS; `note` is what its removal loses."""

    kind: Kind
    name: str
    identifier: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The resources that a removal deletes, in order, and those that it leaves."""

    removed: Sequence[Item]
    kept: Sequence[Item]

    def document(self) -> dict[str, object]:
        """Return the plan as a document."""
        return {
            "remove": [item_document(item) for item in self.removed],
            "stays": [{**item_document(item), "why": WHY_IT_STAYS[item.kind]} for item in self.kept],
        }


def item_document(item: Item) -> dict[str, str]:
    """Return an item as a document."""
    return {"kind": item.kind.value, "name": item.name, **({"note": item.note} if item.note else {})}


def planned(items: Iterable[Item], data: Iterable[Item], *, everything: bool) -> Plan:
    """Return the plan for a stage's resources and its data, which is removed only with `everything`."""
    kept = () if everything else tuple(data)
    removed = [*items, *(tuple(data) if everything else ())]
    return Plan(tuple(sorted(removed, key=_position)), tuple(sorted(kept, key=_position)))


def is_created_at_run_time(tags: Mapping[str, str], *, stage: str) -> bool:
    """Return whether a resource with these tags was created by a function or command of this stage, not by a stack."""
    return tags.get(STAGE_TAG) == stage and CAPABILITY_TAG in tags and STACK_TAG not in tags


def job_log_prefix(stage: str) -> str:
    """Return the prefix of the names of the log groups of a stage's jobs, which Glue makes without tags."""
    return f"/signalbox/{stage}/jobs/"


def _position(item: Item) -> tuple[int, str]:
    return list(Kind).index(item.kind), item.name
