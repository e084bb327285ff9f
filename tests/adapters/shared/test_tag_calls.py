"""Calls for tags are paced."""

from signalbox.aws.shared.tag_calls import TagCalls


class Time:
    def __init__(self) -> None:
        self.now, self.called_at = 100.0, []

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def list_queue_tags(self, **_: str) -> dict:
        self.called_at.append(self.now)
        return {}


def test_there_are_at_most_four_calls_a_second():
    time = Time()
    calls = TagCalls(clock=lambda: time.now, sleep=time.sleep)

    for _ in range(4):
        calls.tags(time, "https://queues.example/a")
    time.now += 60
    calls.tags(time, "https://queues.example/a")

    assert time.called_at == [100, 100.25, 100.5, 100.75, 160.75]
