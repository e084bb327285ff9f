"""`signalbox split policy`, which needs no stage."""

import json

import pytest
from typer.testing import CliRunner

from signalbox.cli.main import app
from signalbox.errors import RejectedError
from signalbox.splitting.queues.policy import InvalidPolicy


def policy(*options: str) -> dict[str, dict[str, object]]:
    result = CliRunner().invoke(app, ["split", "policy", *options], catch_exceptions=False)
    return {statement["Sid"]: statement for statement in json.loads(result.stdout)["Statement"]}


def test_a_policy_names_its_queues():
    statements = policy("--queue", "memes", "--queue", "jokes.fifo", "--region", "eu-west-1", "--account", "1")

    arn = "arn:aws:sqs:eu-west-1:1:"
    assert statements["ReadOriginals"]["Resource"] == [f"{arn}memes", f"{arn}jokes.fifo"]
    assert statements["UseTemporaryQueues"]["Resource"] == [f"{arn}mirrord-*"]


def test_a_policy_takes_a_tag_keys_and_dead_letter_queues():
    statements = policy(
        *("--tag", "team=memes", "--key", "arn:aws:kms:eu-west-1:1:key/2", "--dead-letter-queue", "dead"),
        *("--prefix", "test-", "--partition", "aws-cn", "--region", "eu-west-1"),
    )

    assert statements["ReadOriginalsByTag"]["Condition"] == {"StringEquals": {"aws:ResourceTag/team": "memes"}}
    assert statements["UseKeys"]["Resource"] == ["arn:aws:kms:eu-west-1:1:key/2"]
    assert statements["ReadDeadLetterQueues"]["Resource"] == ["arn:aws-cn:sqs:eu-west-1:*:dead"]
    assert statements["UseTemporaryQueues"]["Resource"] == ["arn:aws-cn:sqs:eu-west-1:*:test-*"]


def test_a_policy_for_nothing_is_refused():
    with pytest.raises(InvalidPolicy, match="neither a queue nor a tag"):
        policy()


def test_a_key_without_its_region_is_refused():
    with pytest.raises(RejectedError, match="--key needs --region"):
        policy("--queue", "memes", "--key", "arn:aws:kms:eu-west-1:1:key/2")


def test_temporary_queues_are_limited_by_a_tag():
    statements = policy("--tag", "team=memes", "--temporary-tag", "tool=split")

    assert statements["UseTemporaryQueuesByTag"]["Condition"] == {"StringEquals": {"aws:ResourceTag/tool": "split"}}
    with pytest.raises(InvalidPolicy, match="expected KEY=VALUE"):
        policy("--tag", "team=memes", "--temporary-tag", "split")
