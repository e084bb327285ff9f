"""Subscriptions read from sr3's options, which are as sr3 3.3.1 derives them from a configuration."""

from datetime import timedelta
from typing import Any

import pytest

from signalbox_sr3.subscription import Subscription, SubscriptionBinding


def options(queue: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    subscription = {
        "queue": {"name": "q_alice.subscribe.weather", "declare": True, "bind": True, "prefetch": 25, **(queue or {})},
        "bindings": [{"exchange": "xs_alice", "topic": "v03.a.#"}],
        "bindings_to_remove": [{"exchange": "xs_alice", "topic": "v03.b.#"}],
    }
    return {"subscriptions": [subscription], "subscription_index": 0, **more}


def test_the_first_instance_declares_and_binds():
    subscription = Subscription.of(options({"expire": 300.0}, no=1, messageAgeMax=60.0))

    assert subscription == Subscription(
        queue="q_alice.subscribe.weather",
        expires=timedelta(minutes=5),
        message_ttl=timedelta(minutes=1),
        prefetch=25,
        is_declared=True,
        bindings=(SubscriptionBinding("xs_alice", "v03.a.#"),),
        former_bindings=(SubscriptionBinding("xs_alice", "v03.b.#"),),
    )


def test_sr3_in_the_foreground_declares_the_queue():
    assert Subscription.of(options(no=0)).is_declared


def test_the_commands_declare_and_cleanup_declare_the_queue():
    assert Subscription.of(options()).is_declared


def test_further_instances_only_consume():
    subscription = Subscription.of(options(no=2))

    assert (subscription.is_declared, subscription.bindings, subscription.former_bindings) == (False, (), ())


def test_declaration_and_binding_can_be_disabled():
    subscription = Subscription.of(options({"declare": False, "bind": False}))

    assert (subscription.is_declared, subscription.bindings) == (False, ())


@pytest.mark.parametrize("expire", [None, 0, 0.0])
def test_a_queue_without_expiry_is_declared_with_zero_to_reset_an_earlier_one(expire):
    assert Subscription.of(options({"expire": expire})).expires == timedelta(0)


def test_topics_of_earlier_versions_can_be_lists_of_words():
    found = options()
    found["subscriptions"][0]["bindings"] = [{"exchange": "xpublic", "topic": ["v03", "#"]}]

    assert Subscription.of(found).bindings == (SubscriptionBinding("xpublic", "v03.#"),)


@pytest.mark.parametrize(("prefetch", "batch", "expected"), [(25, 100, 25), (25, 10, 10), (0, 100, 100)])
def test_unacknowledged_messages_are_limited_by_batch_and_prefetch(prefetch, batch, expected):
    assert Subscription.of(options({"prefetch": prefetch})).maximum_unacknowledged(batch) == expected
