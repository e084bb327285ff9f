"""Hostile filters in the function `split`: whatever they do, only their own sessions end."""

import json
import os
from dataclasses import replace
from itertools import islice

import pytest

from lambdas.splitting.split import handler
from signalbox.aws.splitting.splits import DynamoSplits
from signalbox.splitting.model.split import Phase, SplitSession
from tests.fakes.aws import aws, split_table, sqs  # noqa: F401 - fixtures
from tests.handlers.recorded_events import batch
from tests.handlers.splitting.hostile_filters import hostile_filters
from tests.handlers.splitting.test_split import (
    CONTEXT,
    FIFO,
    STANDARD,
    SplitStage,
    failures,
    record_of,
    session,
    stage,  # noqa: F401 - a fixture
)

# So short that a batch of hostile sessions uses it up: each has a tenth of it, and all together half.
TIMEOUT_SECONDS = 4
HOSTILE_SESSIONS = 20
VALUES = ["a" * 40 + "!", "aab" * 100, "", "é" * 50 + "b", "x" * 3000]


@pytest.fixture
def hasty(stage: SplitStage, monkeypatch: pytest.MonkeyPatch) -> SplitStage:  # noqa: F811 - a fixture
    monkeypatch.setenv("SPLIT_TIMEOUT_SECONDS", str(TIMEOUT_SECONDS))
    return stage


# Bob's filter runs in the function itself, or in the sandbox as those of the hostile sessions do.
BOBS = ({"message_filter": {"color": "^bob$"}}, {"jq_filter": '.MessageAttributes.color.StringValue == "bob"'})


def with_filters(name: str, entry: dict[str, object]) -> SplitSession:
    config = {"feature": {"split_queues": {"*": {"queue_type": "SQS", **entry}}}}
    return replace(session(name, ""), config=json.dumps(config))


@pytest.mark.parametrize(
    "seed", [*range(10), *(pytest.param(one, marks=pytest.mark.release) for one in range(10, 110))]
)
def test_messages_of_others_are_forwarded_at_once_and_in_order(hasty, seed):
    queue = FIFO if seed % 2 else STANDARD
    hostile = [
        with_filters(f"hostile-{n}", one) for n, one in enumerate(islice(hostile_filters(seed), HOSTILE_SESSIONS))
    ]
    stored = hasty.split(with_filters("bob", BOBS[seed // 2 % 2]), *hostile)
    texts = [value for value in VALUES for _ in range(2)]
    records = [record_of(f"{n}", color="bob" if n % 2 else "", queue=queue) for n in range(10)]
    for record, text in zip(records, texts, strict=True):
        attribute = {"stringValue": text, "stringListValues": [], "binaryListValues": [], "dataType": "String"}
        record["messageAttributes"] |= {"who": attribute} if text else {}
    before = sum(os.times()[:4])

    assert failures(handler(batch(*records), CONTEXT)) == []

    assert sum(os.times()[:4]) - before < TIMEOUT_SECONDS  # of a processor, however busy the machine is
    assert hasty.bodies(f"mirrord-bob-{queue}") == ["1", "3", "5", "7", "9"]
    found = {name: hasty.bodies(name) for name in hasty.urls if name.startswith("mirrord-") and name.endswith(queue)}
    rest = [int(body) for name, bodies in found.items() if "-bob-" not in name for body in bodies]
    assert sorted(rest) == [0, 2, 4, 6, 8]
    assert all(bodies == sorted(bodies) for bodies in found.values())
    newest = DynamoSplits(hasty.table).find(stored.split.target)
    assert newest is not None
    bob, *others = newest.split.sessions
    assert bob.phase is Phase.READY
    assert all(one.phase is Phase.READY or str(one.reason).startswith("filter") for one in others)
