"""What AWS bills for the events of live is what the cost report assumes."""

import pytest

from signalbox.history.prices import REPLY_READS
from tests.fakes.aws import aws, exchange_table, live_table, sqs  # noqa: F401 - fixtures
from tests.handlers.billed_calls import READS, billed_units, priced_units
from tests.handlers.live import test_deliver
from tests.handlers.live.live_stage import REALM, LiveStage, stage  # noqa: F401 - fixtures
from tests.handlers.live.test_deliver import event, event_batch

posts = test_deliver.stage


def hello(stage: LiveStage, secret: str) -> None:  # noqa: F811 - a type
    stage.say("c1", 1, REALM, {"authid": "source", "authmethods": ["ticket"]})
    stage.say("c1", 5, secret, {})


def refuse(stage: LiveStage) -> None:  # noqa: F811 - a type
    stage.say("c2", 5, "wrong", {})


def begin(stage: LiveStage) -> None:  # noqa: F811 - a type
    stage.connect("c2")
    stage.say("c2", 1, REALM, {"authid": "source", "authmethods": ["ticket"]})


def start(stage: LiveStage) -> None:  # noqa: F811 - a type
    stage.connect("c1")
    hello(stage, "a-secret")


@pytest.fixture(autouse=True)
def warmth(monkeypatch):
    """Let functions keep what they have read, however slow the machine is."""
    monkeypatch.setattr("signalbox.aws.live.recent.RIGHTS_KEPT_SECONDS", 3_600)


STEPS = {
    "session start": (start, 2),
    "subscription": (lambda live: live.say("c1", 32, 1, {}, "trial.a"), 1),
    "dropped publication": (lambda live: live.say("c1", 16, 2, {}, "forbidden", ["a"]), 0),
    "refused login": (refuse, 1),
    "session end": (lambda live: live.say("c1", 6, {}, "wamp.close.normal"), 1),
}


@pytest.mark.parametrize("what", STEPS)
def test_an_event_of_a_session(stage, what):  # noqa: F811 - fixture
    stage.join("c0")
    step, replies = STEPS[what]
    if what != "session start":
        start(stage)
        begin(stage)

    with billed_units() as billed:
        step(stage)

    billed[READS] += REPLY_READS * replies  # of the delivery, which this stage does not run
    assert billed == priced_units(("live", what), is_warm=True)


def test_the_delivery_of_a_batch(posts):
    for item in (test_deliver.subscribed(), event_batch(event(1))):
        posts.put(item)
        posts.deliver()

    with billed_units() as billed:
        posts.put(event_batch(event(2)))
        posts.deliver()

    assert billed == priced_units(("live", "delivery"), is_warm=True)
