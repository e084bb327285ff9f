"""Registries as mirrord's users write them, for the workloads that Signalbox can switch."""

from datetime import timedelta

import pytest

from signalbox.splitting.consumers.registry import NameSource, Place, RegisteredQueue, Registry
from tests.unit.splitting.consumers.registries import (
    MEME_APP,
    new,
    new_queue,
    old,
    old_queue,
    parse,
    property_list,
    source,
)


def test_the_example_of_mirrords_migration_guide_says_the_same_in_both_forms():
    """migrating-to-mirrordsplitconfig.md, Amazon SQS, with the workload of a Lambda function."""
    before = old(
        {
            "meme-queue": old_queue(nameSource={"envVar": "MEME"}, tags={"tool": "mirrord"}, sns=True),
            "ad-queue": old_queue(nameSource={"envVar": "AD"}),
        }
    )
    after = new(
        new_queue({"env": "MEME", "containers": ["main"]}, id="meme-queue", queueConfig="options"),
        new_queue({"env": "AD", "containers": ["main"]}, id="ad-queue"),
    )

    expected = Registry(
        MEME_APP,
        (
            RegisteredQueue(
                "meme-queue", (NameSource(Place.VARIABLE, "MEME", containers=("main",)),), {"tool": "mirrord"}, sns=True
            ),
            RegisteredQueue("ad-queue", (NameSource(Place.VARIABLE, "AD", containers=("main",)),), {}),
        ),
    )
    assert parse(before) == (expected,)
    assert parse(after, None, property_list(sns="true", s3_event="false", tags='{"tool":"mirrord"}')) == (expected,)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"nameSource": {"regexPattern": "^Q"}}, NameSource(Place.VARIABLES_LIKE, "^Q", containers=("main",))),
        ({"fallbackName": "memes"}, NameSource(Place.VARIABLE, "Q", fallback="memes", containers=("main",))),
        ({"namesFromJsonMap": True}, NameSource(Place.VARIABLE, "Q", selector=".[]", containers=("main",))),
        ({"s3Event": False}, NameSource(Place.VARIABLE, "Q", containers=("main",))),
        ({"nameSource": {"eventSource": "memes"}}, NameSource(Place.EVENT_SOURCE, "memes", containers=("main",))),
        (
            {"nameSource": {"eventSource": "memes", "envVar": "Q"}},
            NameSource(Place.EVENT_SOURCE, "memes", containers=("main",), variable="Q"),
        ),
    ],
    ids=["regexPattern", "fallbackName", "namesFromJsonMap", "no s3Event", "eventSource", "eventSource and envVar"],
)
def test_the_older_form_says_where_names_are(fields, expected):
    assert source(old({"q": old_queue(**fields)})) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"envLike": "^Q"}, NameSource(Place.VARIABLES_LIKE, "^Q")),
        ({"env": "Q", "fallback": "memes"}, NameSource(Place.VARIABLE, "Q", fallback="memes")),
        ({"env": "Q", "valueSelector": ".[]"}, NameSource(Place.VARIABLE, "Q", selector=".[]")),
        ({"env": "Q", "valueSelector": ".queue"}, NameSource(Place.VARIABLE, "Q", selector=".queue")),
        ({"env": "Q", "valuePattern": "q=(.*)"}, NameSource(Place.VARIABLE, "Q", pattern="q=(.*)")),
        ({"eventSource": "memes"}, NameSource(Place.EVENT_SOURCE, "memes")),
    ],
)
def test_the_newer_form_says_where_names_are(written, expected):
    assert source(new(new_queue(written))) == expected


@pytest.mark.parametrize("fields", [{"nameSource": None}, {"nameSource": {"envVar": "Q"}}])
def test_a_parameters_own_value_is_the_name(fields):
    found = source(old({"q": old_queue(**fields)}, kind="SsmParameter", name="/memes/queue"))

    variable = "Q" if fields["nameSource"] else None
    assert found == NameSource(Place.VALUE, containers=("main",), variable=variable)


def test_time_limits_and_names_are_read():
    """`workloadRestartTimeout` is 120 s if not given; `drainTimeout` not given means as long as it takes."""
    (first,) = parse(old({"q": old_queue()}))
    (second,) = parse(old({"q": old_queue()}, workloadRestartTimeout=30))
    (third,) = parse(
        new(
            new_queue({"env": "Q"}),
            restart={"strategy": "standard", "timeout": 60},
            drainTimeout=0,
            tmpNameTemplate="mirrord-{{RANDOM}}",
        )
    )

    assert (first.switch_timeout, first.drain_timeout) == (timedelta(seconds=120), None)
    assert second.switch_timeout == timedelta(seconds=30)
    assert (third.switch_timeout, third.drain_timeout) == (timedelta(seconds=60), timedelta(0))
    assert third.name_template == "mirrord-{{RANDOM}}"


def test_older_registries_of_one_target_are_put_together():
    """Wire page, A.6: two registries on one workload must be merged."""
    (registry,) = parse(old({"a": old_queue()}, workloadRestartTimeout=200), old({"b": old_queue()}))

    assert [queue.queue_id for queue in registry.queues] == ["a", "b"]
    assert registry.switch_timeout == timedelta(seconds=200)


def test_registries_of_several_targets_stand_side_by_side():
    registries = parse(old({"a": old_queue()}), old({"a": old_queue()}, name="other"))

    assert [str(registry.target) for registry in registries] == ["lambda/meme-app", "lambda/other"]
