"""Registries as mirrord's users write them, for the workloads that Signalbox can switch."""

from datetime import timedelta

import pytest

from signalbox.splitting.consumers.registry import NameSource, RegisteredQueue, Registry, SourceKind
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


def test_both_forms_of_mirrords_migration_example_are_equal():
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
                "meme-queue",
                (NameSource(SourceKind.VARIABLE, "MEME", containers=("main",)),),
                {"tool": "mirrord"},
                sns=True,
            ),
            RegisteredQueue("ad-queue", (NameSource(SourceKind.VARIABLE, "AD", containers=("main",)),), {}),
        ),
    )
    assert parse(before) == (expected,)
    assert parse(after, None, property_list(sns="true", s3_event="false", tags='{"tool":"mirrord"}')) == (expected,)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"nameSource": {"regexPattern": "^Q"}}, NameSource(SourceKind.VARIABLES_LIKE, "^Q", containers=("main",))),
        ({"fallbackName": "memes"}, NameSource(SourceKind.VARIABLE, "Q", fallback="memes", containers=("main",))),
        ({"namesFromJsonMap": True}, NameSource(SourceKind.VARIABLE, "Q", selector=".[]", containers=("main",))),
        ({"s3Event": False}, NameSource(SourceKind.VARIABLE, "Q", containers=("main",))),
        ({"nameSource": {"eventSource": "memes"}}, NameSource(SourceKind.EVENT_SOURCE, "memes", containers=("main",))),
        (
            {"nameSource": {"eventSource": "memes", "envVar": "Q"}},
            NameSource(SourceKind.EVENT_SOURCE, "memes", containers=("main",), variable="Q"),
        ),
    ],
    ids=["regexPattern", "fallbackName", "namesFromJsonMap", "no s3Event", "eventSource", "eventSource and envVar"],
)
def test_name_sources_of_the_older_form(fields, expected):
    assert source(old({"q": old_queue(**fields)})) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"envLike": "^Q"}, NameSource(SourceKind.VARIABLES_LIKE, "^Q")),
        ({"env": "Q", "fallback": "memes"}, NameSource(SourceKind.VARIABLE, "Q", fallback="memes")),
        ({"env": "Q", "valueSelector": ".[]"}, NameSource(SourceKind.VARIABLE, "Q", selector=".[]")),
        ({"env": "Q", "valueSelector": ".queue"}, NameSource(SourceKind.VARIABLE, "Q", selector=".queue")),
        ({"env": "Q", "valuePattern": "q=(.*)"}, NameSource(SourceKind.VARIABLE, "Q", pattern="q=(.*)")),
        ({"eventSource": "memes"}, NameSource(SourceKind.EVENT_SOURCE, "memes")),
    ],
)
def test_name_sources_of_the_newer_form(written, expected):
    assert source(new(new_queue(written))) == expected


@pytest.mark.parametrize("fields", [{"nameSource": None}, {"nameSource": {"envVar": "Q"}}])
def test_a_parameters_own_value_is_the_name(fields):
    found = source(old({"q": old_queue(**fields)}, kind="SsmParameter", name="/memes/queue"))

    variable = "Q" if fields["nameSource"] else None
    assert found == NameSource(SourceKind.VALUE, containers=("main",), variable=variable)


def test_time_limits_and_names_are_read():
    """`workloadRestartTimeout` defaults to 120 s; without `drainTimeout` there is no limit."""
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


def test_older_registries_of_one_target_are_merged():
    """Wire page, A.6: two registries on one workload must be merged."""
    (registry,) = parse(old({"a": old_queue()}, workloadRestartTimeout=200), old({"b": old_queue()}))

    assert [queue.queue_id for queue in registry.queues] == ["a", "b"]
    assert registry.switch_timeout == timedelta(seconds=200)


def test_a_file_may_have_registries_of_several_targets():
    registries = parse(old({"a": old_queue()}), old({"a": old_queue()}, name="other"))

    assert [str(registry.target) for registry in registries] == ["lambda/meme-app", "lambda/other"]


def test_a_queue_of_s3_events_is_marked_in_both_forms():
    """mirrord, docs: migrating-to-mirrordsplitconfig.md."""
    before = old({"q": old_queue(sns=True, s3Event=True)})
    after = new(new_queue({"env": "Q", "containers": ["main"]}, queueConfig="options"))

    for registry in (parse(before), parse(after, property_list(sns="true", s3_event="true"))):
        (queue,) = registry[0].queues
        assert (queue.sns, queue.s3_event) == (True, True)
