"""A function that is killed before or after any of its calls: the client gets one answer, and nothing is left over."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from botocore.client import BaseClient

from lambdas.rendezvous import offer, proxies
from lambdas.shared.http import Request
from signalbox.rendezvous.wire.proxy import PollResponse, ProxyAnswer, ProxyPoll, answer_body, poll_body
from tests.handlers.recorded_events import batch, event, message, request
from tests.handlers.rendezvous.ledger import kind_of

# The simulation kills the same functions at any call, in `make check`.
pytestmark = pytest.mark.release
CLIENT = "0123456789abcdef"
CALLS = {
    "offer": [("CreateQueue", ""), ("Query", "pace"), ("PutItem", "offer"), ("PutRecordBatch", "")],
    "poll": [("Query", "offer"), ("UpdateItem", "offer"), ("PutRecordBatch", ""), ("UpdateItem", "statistics")],
    "answer": [
        ("Query", "offer"),
        ("UpdateItem", "offer"),
        ("SendMessage", ""),
        ("DeleteMessage", ""),
        ("PutRecordBatch", ""),
        ("UpdateItem", "statistics"),
    ],
}
KILLS = [(function, call, after) for function, calls in CALLS.items() for call in calls for after in (False, True)]


class Killed(BaseException):
    """Raised in place of a call; no function catches it."""


@contextmanager
def killed(call: tuple[str, str], *, after: bool) -> Iterator[None]:
    """Kill the function once, before or after its first call of a kind."""
    make, waiting = BaseClient._make_api_call, [call]

    def called(client: BaseClient, operation: str, arguments: dict[str, Any]) -> Any:
        is_due = (operation, kind_of(arguments)) in waiting
        if is_due:
            waiting.clear()
        if is_due and not after:
            raise Killed
        response = make(client, operation, arguments)
        if is_due:
            raise Killed
        return response

    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(BaseClient, "_make_api_call", called)
        yield
    assert not waiting, "the function did not make the call"


class Rendezvous:
    """The deliveries of one offer, and proxies of which each polls once and answers at once."""

    def __init__(self, stage: Any) -> None:
        self.stage, self.sids = stage, count(1)
        self.record = stage.received(message(CLIENT))
        self.deliveries, self.is_deleted = 0, False

    def deliver(self) -> None:
        """Deliver the offer as the queue does: again until it is deleted, by Lambda when it is done."""
        self.deliveries += 1
        attributes = self.record["attributes"] | {"ApproximateReceiveCount": str(self.deliveries)}
        result = offer.handler(batch(self.record | {"attributes": attributes}), None)
        if not result["batchItemFailures"]:
            queue = {"QueueUrl": self.stage.broker_queue_url, "ReceiptHandle": self.record["receiptHandle"]}
            self.stage.sqs.delete_message(**queue)

    def poll(self) -> str | None:
        """Poll with a new session, and return it if it was matched."""
        sid = f"session-{next(self.sids)}"
        recorded = ProxyPoll.parse(request_body("poll"))
        body = poll_body(ProxyPoll(**{name: getattr(recorded, name) for name in recorded.__slots__} | {"sid": sid}))
        response = PollResponse.parse(proxies.handler(request("poll", body=body), None)["body"].encode())
        return sid if response.is_match else None

    def answer(self, sid: str) -> None:
        recorded = ProxyAnswer.parse(request_body("answer"))
        proxies.handler(request("answer", body=answer_body(ProxyAnswer(sid, recorded.answer))), None)

    def finish(self) -> None:
        """Let the queue deliver the offer and a proxy poll in turns, until the offer is deleted."""
        for _ in range(4):
            if not self.stage.in_flight():
                return
            self.deliver()
            sid = self.poll()
            if sid:
                self.answer(sid)
        raise AssertionError("the offer is still in flight")


def request_body(name: str) -> bytes:
    return Request.parse(event(name)).body


def steps(rendezvous: Rendezvous) -> dict[str, Callable[[], object]]:
    return {
        "offer": rendezvous.deliver,
        "poll": rendezvous.poll,
        "answer": lambda: rendezvous.answer("session-1"),
    }


@pytest.mark.parametrize(
    ("function", "call", "after"),
    KILLS,
    ids=[f"{function} {'after' if after else 'before'} {' '.join(call)}" for function, call, after in KILLS],
)
def test_after_a_kill_the_client_gets_one_answer(stage, monkeypatch, function, call, after) -> None:
    # A silent proxy's offer goes to the next poll.
    monkeypatch.setenv("MATCH_PATIENCE_SECONDS", "0")
    monkeypatch.setattr("lambdas.rendezvous.wiring.COLLECTED_FOR", timedelta(0))  # each function writes its events
    monkeypatch.setattr("signalbox.rendezvous.rules.offer_service.SENT_WITHIN", timedelta(0))  # no time passes here
    stage.expect_proxies()
    rendezvous = Rendezvous(stage)
    for name, step in steps(rendezvous).items():
        if name == function:
            with killed(call, after=after):
                step()
            break
        step()

    rendezvous.finish()

    (reply,) = stage.replies(CLIENT)
    assert reply.startswith('{"answer":')
    assert stage.in_flight() == 0
