"""One run: a stage of functions and services, its clients, its faults, and what it is checked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lambdas.history import drain
from stacks.settings.choices import VISIBILITY_PER_TIMEOUT
from tests.simulation.calls import Calls, Outage
from tests.simulation.dynamodb import SimulatedDynamoDb
from tests.simulation.functions import Event, Failure, Function, Mapping_
from tests.simulation.kernel import START, USUAL_RATES, Fault, Kernel, Process, Rates
from tests.simulation.queue import SimulatedQueue
from tests.simulation.services import Answer, Request
from tests.simulation.sqs import SimulatedSqs
from tests.simulation.stand_ins import PRESENT

OVERFLOW, STREAM, DRAIN_SECONDS = "overflow", "history", 50


@dataclass
class SimulatedFirehose:
    """Firehose: it keeps the records that it took."""

    kernel: Kernel
    lines: list[str] = field(default_factory=list)

    def __call__(self, operation: str, request: Request) -> Answer:
        if operation != "PutRecordBatch":
            raise NotImplementedError(f"Firehose {operation}")
        results = []
        for record in request["Records"]:
            if self.kernel.is_faulty("a record is refused", self.kernel.rates.unprocessed):
                results.append({"ErrorCode": "ServiceUnavailableException"})
                continue
            self.lines += record["Data"].decode().splitlines()
            results.append({"RecordId": "1"})
        return {"FailedPutCount": sum("ErrorCode" in one for one in results), "RequestResponses": results}


@dataclass(frozen=True)
class FaultPlan:
    """The faults of a run: for how long, how many, and for how long none follow, so that everything ends."""

    faults_for: float
    calm_for: float
    factor: float
    outages: int
    longest_outage: float


def fault_plan_of(kernel: Kernel) -> FaultPlan:
    """Return the faults of a seed: of most seeds for a quarter of an hour, of a few for hours with long outages."""
    kind = kernel.draw("weather")  # the key decides which seeds are long
    factor = (0.0, 0.3, 1.0, 1.0, 3.0)[int(kernel.draw("factor") * 5)]
    outages = int(kernel.draw("outages") * 4)
    if kind < 0.1:
        return FaultPlan(4 * 3600, 1500, factor, outages, 2 * 3600)
    return FaultPlan(900, 900, factor, outages, 600 if kind < 0.5 else 60)


class World:
    """The parts that all capabilities share; `services` may be away, and `private` are parts of bodies or addresses."""

    services: tuple[str, ...] = ("sqs", "dynamodb", "firehose")
    private: tuple[str, ...] = ()

    def __init__(
        self,
        seed: int,
        *,
        chosen: frozenset[str] | None = None,
        has_story: bool = False,
        kernel: Kernel | None = None,
        fault_plan: FaultPlan | None = None,
    ) -> None:
        self.kernel = kernel or Kernel(seed, chosen=chosen, has_story=has_story)
        PRESENT.world = self
        self.calls = Calls(self.kernel)
        self.sqs = SimulatedSqs(self.kernel)
        self.dynamodb = SimulatedDynamoDb(self.kernel)
        self.firehose = SimulatedFirehose(self.kernel)
        self.calls.services |= {"sqs": self.sqs, "dynamodb": self.dynamodb, "firehose": self.firehose}
        self.functions: dict[str, Function] = {}
        self.fault_plan = fault_plan or fault_plan_of(self.kernel)
        self.kernel.rates = Rates() if self.fault_plan.factor == 0 else USUAL_RATES.times(self.fault_plan.factor)
        self.faults_end = START + self.fault_plan.faults_for
        self._plan_outages()
        self.every(900, self.dynamodb.expire)
        self._make_history()

    @property
    def end(self) -> float:
        return self.faults_end + self.fault_plan.calm_for

    def _make_history(self) -> None:
        """Make the queue of events that Firehose refuses, and the function that sends them again."""
        attributes = {
            "VisibilityTimeout": str(VISIBILITY_PER_TIMEOUT * DRAIN_SECONDS),
            "MessageRetentionPeriod": "1209600",
        }
        self.sqs("CreateQueue", {"QueueName": OVERFLOW, "Attributes": attributes})
        drains = self.function("drain", drain.handler, timeout=DRAIN_SECONDS, environment={"HISTORY_STREAM": STREAM})
        Mapping_(self.sqs.queues[OVERFLOW], drains, batch_size=10, concurrency=10)

    def _plan_outages(self) -> None:
        kernel = self.kernel
        for number in range(self.fault_plan.outages):
            key = f"outage{number}"
            if kernel.chosen is not None and key not in kernel.chosen:
                continue
            begin = START + kernel.draw(f"{key} begin") * self.fault_plan.faults_for
            length = self.fault_plan.longest_outage ** kernel.draw(f"{key} length")
            service = self.services[int(kernel.draw(f"{key} service") * len(self.services))]
            share = (0.3, 1.0)[int(kernel.draw(f"{key} share") * 2)]
            hangs = kernel.draw(f"{key} hangs") < 0.3
            end, code = min(begin + length, self.faults_end), kernel.draw(f"{key} code")
            self.calls.outages.append(Outage(service, begin, end, share, hangs, code))
            kernel.at(begin, partial(self._tell_outage, key, service, end))

    def _tell_outage(self, key: str, service: str, end: float) -> None:
        self.kernel.faults.append(Fault(key, f"{service} is away for {end - self.kernel.now:.0f} s", self.kernel.now))
        self.kernel.note(f"FAULT: {service} is away for {end - self.kernel.now:.0f} s")

    def was_away(self, begin: float, end: float) -> bool:
        """Return whether any service was away in a time."""
        return any(one.begin < end and begin < one.end for one in self.calls.outages)

    def function(
        self,
        name: str,
        handler: Callable[..., Any],
        *,
        timeout: float,
        environment: Mapping[str, str],
        concurrency: int = 1000,
        loops: bool = False,
    ) -> Function:
        made = Function(
            self.kernel, name, handler, timeout=timeout, environment=environment, concurrency=concurrency, loops=loops
        )
        self.functions[name] = made
        return made

    def every(self, seconds: float, turn: Callable[[], object], *, first: float | None = None) -> None:
        """Run a turn of the hub again and again."""

        def again() -> None:
            turn()
            self.kernel.after(seconds, again)

        self.kernel.after(seconds if first is None else first, again)

    def schedule(self, function: Function, event: Event, seconds: float) -> None:
        """Invoke a function by a schedule; EventBridge repeats failed invocations twice, after one and two minutes."""

        def invoke(attempt: int = 0) -> None:
            key = f"schedule {event} {self.kernel.now:.0f} {attempt}"
            function.invoke(dict(event), key, partial(ended, attempt))

        def ended(attempt: int, result: Any) -> None:
            if isinstance(result, Failure) and attempt < 2:
                self.kernel.after(60 * (attempt + 1), partial(invoke, attempt + 1))

        self.every(seconds, invoke, first=seconds * self.kernel.draw(f"first {event}"))

    def limit(self, queue: SimulatedQueue) -> None:
        """Let few messages of a queue be in flight at once, in some seeds."""
        if self.kernel.draw("limit") < 0.2:
            queue.most_in_flight = 20

    def actor(self, name: str, work: Callable[[], object], *, after: float = 0.0) -> Process:
        """Start a client: a process without an instance, which no fault kills."""
        process = Process(name, name)
        self.kernel.after(after, partial(self.kernel.spawn, process, name, work))
        return process

    def call(self, service: str, operation: str, **request: Any) -> Answer:
        """Make a call of the current client. Raises as `Calls.make` does."""
        return self.calls.make(service, operation, request)

    def request(self, function: Function, event: Event) -> Any:
        """Invoke a function over HTTP from the current task, and return its result or a `Failure`."""
        kernel, task = self.kernel, self.kernel.current
        assert task is not None
        results: list[Any] = []

        def ended(result: Any) -> None:
            results.append(result)
            kernel.resume(task)

        if not function.invoke(event, kernel.next_key(), ended):
            return Failure(None)
        while not results:
            kernel.pause()
        return results[0]

    def run(self) -> None:
        # What was made until now was made without faults, and long ago.
        self.kernel.faults_end = self.faults_end
        for queue in self.sqs.queues.values():
            queue.created_at -= 3600
        self.kernel.run(self.end)
