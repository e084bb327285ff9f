"""MiniStack's maintenance of a queue runs seldom, and skips messages that need none."""

from signalbox.local.emulator.patches.queue_upkeep import at_most_every, unless_complete


def test_each_queue_is_maintained_at_most_once_in_an_interval():
    moments, maintained = iter([0.0, 0.4, 0.5, 1.0, 1.9]), list[str]()
    maintain = at_most_every(1.0, lambda queue: maintained.append(queue["name"]), now=lambda: next(moments))
    orders, memes = {"name": "orders"}, {"name": "memes"}

    for queue in (orders, orders, memes, orders, orders):
        maintain(queue)

    assert maintained == ["orders", "memes", "orders"]


def test_fields_are_added_only_to_messages_that_lack_some():
    completed = list[dict[str, object]]()
    add_fields = unless_complete(completed.append)
    from_topic = {"body": "from SNS", "md5_body": "0"}

    for message in ({"md5_body": "0", "sys": {}, "seq": None}, from_topic):
        add_fields(message)

    assert completed == [from_topic]
