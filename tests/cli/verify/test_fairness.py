"""The measurement of fair queues distinguishes them from other queues, on a queue in memory."""

import pytest

from signalbox.cli.verify.fairness import BURST, IN_WORK, NOISY, QUIET, overtaken


class Queue:
    """An SQS queue of messages by their bodies; a fair one delivers the quiet group first."""

    def __init__(self, *, is_fair: bool) -> None:
        self.is_fair, self.waiting = is_fair, []

    def send_message_batch(self, *, Entries, **_):  # noqa: N803 - boto3's
        assert len(Entries) <= 10
        assert all(one["MessageGroupId"] == one["MessageBody"] for one in Entries)
        self.waiting += [one["MessageBody"] for one in Entries]

    def receive_message(self, **_):
        if not self.waiting:
            return {}
        body = QUIET if self.is_fair and QUIET in self.waiting else self.waiting[0]
        self.waiting.remove(body)
        return {"Messages": [{"Body": body}]}


@pytest.mark.parametrize(("is_fair", "before"), [(True, 0), (False, BURST - IN_WORK)])
def test_the_waiting_burst_comes_first_without_fair_queues_only(is_fair, before):
    queue = Queue(is_fair=is_fair)

    assert overtaken(queue, "url") == before
    assert queue.waiting == [NOISY] * (BURST - IN_WORK if is_fair else 0)


def test_messages_that_never_come_do_not_hang_the_measurement():
    queue = Queue(is_fair=False)
    send = queue.send_message_batch
    queue.send_message_batch = lambda **given: send(**given) if given["Entries"][0]["MessageBody"] == NOISY else None

    assert overtaken(queue, "url") == BURST - IN_WORK
