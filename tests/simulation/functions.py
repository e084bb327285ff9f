"""Functions of Lambda: their instances with state of their own, invocations, time-outs and event source mappings."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lambdas.shared import instance
from tests.simulation.kernel import Kernel, Killed, Process
from tests.simulation.queue import SimulatedQueue, StoredMessage, received
from tests.simulation.services import Refusal, arn_of

Event = dict[str, Any]
Ended = Callable[[Any], None]
COLD_START = 0.4
# Lambda ends a chain after about sixteen invocations of one function, and drops its messages: recursive loop detection.
LONGEST_CHAIN = 16


@dataclass(eq=False)
class Sandbox:
    """An instance of a function: its environment, and what its modules remember."""

    function: "Function"
    remembered: dict[Any, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Failure:
    """The end of an invocation without a result: killed, timed out, or by an exception."""

    error: BaseException | None


@dataclass
class Context(instance.Context):
    """Lambda's context of an invocation."""

    kernel: Kernel
    until: float
    aws_request_id: str
    invoked_function_arn: str

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self.until - self.kernel.now) * 1000))


class Function:
    """A function; `handler` is called with the event and the context, in a task of an instance.

    `longest_chain` is the most invocations of it in a chain. With `loops`, Lambda does not end its chains.
    """

    def __init__(
        self,
        kernel: Kernel,
        name: str,
        handler: Callable[[Event, Any], Any],
        *,
        timeout: float,
        environment: Mapping[str, str],
        concurrency: int = 1000,
        loops: bool = False,
    ) -> None:
        self.kernel, self.name, self.handler, self.loops = kernel, name, handler, loops
        self.timeout, self.environment, self.concurrency = timeout, dict(environment), concurrency
        self.identity = f"AROA{name.upper()}:{name}"
        self.idle: list[Sandbox] = []
        self.running: list[Process] = []
        self.invocations = 0
        self.errors: list[BaseException] = []
        self.longest_chain = 0

    def invoke(self, event: Event, key: str, ended: Ended, *, chain: Mapping[str, int] | None = None) -> bool:
        """Begin an invocation and return True; `ended` gets its result or a `Failure`. False when it is throttled."""
        if len(self.running) >= self.concurrency:
            return False
        chain = {**(chain or {}), self.name: (chain or {}).get(self.name, 0) + 1}
        self.longest_chain = max(self.longest_chain, chain[self.name])
        if not self.loops and chain[self.name] > LONGEST_CHAIN:
            self.kernel.at(self.kernel.now, partial(ended, None))
            return True
        self.invocations += 1
        kernel, is_cold = self.kernel, not self.idle
        sandbox = Sandbox(self) if is_cold else self.idle.pop()
        name = f"{self.name}#{self.invocations}"
        process = Process(name, f"{self.name}/{key}", sandbox, self.identity, chain, began=kernel.now)
        self.running.append(process)
        call = _Invocation(self, process, event, ended, kernel.now + self.timeout + (COLD_START if is_cold else 0))
        kernel.after(COLD_START if is_cold else 0.001, call.begin)
        return True

    def end(self, process: Process, *, is_kept: bool) -> None:
        """Note that an invocation has ended; its instance is kept, or lost."""
        if process not in self.running:
            return
        self.running.remove(process)
        if is_kept and not self.kernel.is_faulty("an instance is replaced", self.kernel.rates.lost_sandbox):
            self.idle.append(process.sandbox)


@dataclass(eq=False)
class _Invocation:
    function: Function
    process: Process
    event: Event
    ended: Ended
    until: float
    is_over: bool = False

    def begin(self) -> None:
        kernel = self.function.kernel
        kernel.at(self.until, self._time_out)
        kernel.spawn(self.process, self.process.key, self._run)

    def _run(self) -> None:
        kernel = self.function.kernel
        try:
            kernel.note("begins")
            arn = arn_of("lambda", f"function:{self.function.name}")
            context = Context(kernel, self.until, self.process.key[-36:], arn)
            result = self.function.handler(self.event, context)
        except Killed:
            kernel.note("is killed")
            self._finish(Failure(None), is_kept=False)
            raise
        except Exception as error:  # noqa: BLE001 - Lambda reports any
            self.function.errors.append(error)
            kernel.note(f"fails: {type(error).__name__}: {error}")
            self._finish(Failure(error), is_kept=True)
        else:
            kernel.note("ends")
            self._finish(result, is_kept=True)

    def _time_out(self) -> None:
        if not self.is_over:
            self.function.kernel.kill(self.process)
            self._finish(Failure(None), is_kept=False)

    def _finish(self, result: Any, *, is_kept: bool) -> None:
        if self.is_over:
            return
        self.is_over = True
        self.function.end(self.process, is_kept=is_kept)
        kernel = self.function.kernel
        kernel.at(kernel.now, partial(self.ended, result))


class Mapping_:  # noqa: N801 - `Mapping` is the type of dictionaries
    """An event source mapping from a queue to a function, with partial failures."""

    def __init__(
        self,
        queue: SimulatedQueue,
        function: Function,
        *,
        batch_size: int,
        window: float = 0.0,
        concurrency: int = 1000,
    ) -> None:
        self.queue, self.function, self.kernel = queue, function, function.kernel
        self.batch_size, self.window, self.concurrency = batch_size, window, concurrency
        self.active = 0
        self.is_enabled = True
        self._next: float | None = None
        queue.watchers.append(self._watch)
        self._watch(self.kernel.now)

    def wake(self) -> None:
        """Poll now, after the mapping was enabled."""
        self._watch(self.kernel.now)

    def _watch(self, visible_at: float) -> None:
        """Poll soon after a message becomes visible."""
        if self._next is None or visible_at < self._next:
            at = max(visible_at, self.kernel.now) + self.window + 0.005
            self._next = at
            self.kernel.at(at, partial(self._poll, at))

    def _poll(self, at: float) -> None:
        if self._next != at:
            return  # an earlier poll was planned later on
        self._next = None
        if not self.is_enabled:
            return
        while self.active < self.concurrency:
            messages = self.queue.receive(self.batch_size)
            if not messages:
                break
            self._invoke(messages)
        upcoming = self.queue.next_visible()
        if upcoming is not None and self.active < self.concurrency:
            self._watch(upcoming)

    def _invoke(self, messages: list[StoredMessage]) -> None:
        kernel = self.kernel
        key = "+".join(f"{one.id[:8]}.{one.receives}" for one in messages)
        if kernel.is_faulty("a batch is received and not passed on", kernel.rates.not_invoked, key=key):
            return
        event = {"Records": [as_record(self.queue, one) for one in messages]}
        counts = Counter[str]()
        for message in messages:
            counts |= Counter(message.chain)
        self.active += 1
        ended = partial(self._ended, messages, [one.handle for one in messages])
        if not self.function.invoke(event, key, ended, chain=counts):
            self.active -= 1  # throttled: the messages come again

    def _ended(self, messages: list[StoredMessage], handles: list[str], result: Any) -> None:
        self.active -= 1
        if not isinstance(result, Failure):
            failed = {one["itemIdentifier"] for one in (result or {}).get("batchItemFailures", ())}
            for message, handle in zip(messages, handles, strict=True):
                if message.id not in failed:
                    self._delete(message, handle)
        self._watch(self.kernel.now)

    def _delete(self, message: StoredMessage, handle: str) -> None:
        if self.kernel.is_faulty("the mapping does not delete", self.kernel.rates.undelete):
            return
        with suppress(Refusal):  # an expired receipt: the message comes again
            self.queue.delete(handle)


def as_record(queue: SimulatedQueue, message: StoredMessage) -> Event:
    """Return the record of a message in Lambda's event."""
    found = received(queue, message)
    attributes = {
        name: {
            "dataType": value["DataType"],
            **({"stringValue": value["StringValue"]} if "StringValue" in value else {}),
            **({"binaryValue": value["BinaryValue"]} if "BinaryValue" in value else {}),
        }
        for name, value in message.attributes.items()
    }
    return {
        "messageId": found["MessageId"],
        "receiptHandle": found["ReceiptHandle"],
        "body": found["Body"],
        "attributes": found["Attributes"],
        "messageAttributes": attributes,
        "md5OfBody": "",
        "eventSource": "aws:sqs",
        "eventSourceARN": arn_of("sqs", queue.name),
        "awsRegion": "us-east-1",
    }
