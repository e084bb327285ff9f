"""The calls of clients: latency, retries, outages, crashes before and after, and lost responses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from tests.simulation.kernel import Kernel, Killed, Process
from tests.simulation.services import Answer, Refusal, Request

Serve = Callable[[str, Request], Answer]

# The attempts that botocore makes of a call, and the longest pauses before each repetition, in seconds.
ATTEMPTS, FIRST_PAUSE = {"dynamodb": 10}, {"dynamodb": 0.05}
USUAL_ATTEMPTS, USUAL_PAUSE = 5, 1.0
# How a service refuses calls during an outage, and now and then at other times.
REFUSALS = {
    "dynamodb": (("ProvisionedThroughputExceededException", 400), ("InternalServerError", 500)),
    "apigatewaymanagementapi": (("LimitExceededException", 429), ("InternalServerError", 500)),
    "sqs": (("KMS.ThrottlingException", 400), ("RequestThrottled", 403), ("ServiceUnavailable", 503)),
    "kubernetes": (("TooManyRequests", 429), ("InternalError", 500), ("ServiceUnavailable", 503)),
}
USUAL_REFUSALS = (("ThrottlingException", 400), ("ServiceUnavailable", 503))
# How long a call waits for an answer.
READ_TIMEOUT, USUAL_READ_TIMEOUT = {"kubernetes": 5.0}, 60.0
NOT_REPEATED = ("KMS.ThrottlingException", "RequestThrottled")


@dataclass(frozen=True)
class Outage:
    """A time in which a service leaves a share of its calls unanswered, or refuses it by one `code`, from 0 to 1."""

    service: str
    begin: float
    end: float
    share: float
    hangs: bool
    code: float


class Calls:
    """The way from a client to the simulated services."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.services: dict[str, Serve] = {}
        self.outages: list[Outage] = []

    def make(self, service: str, operation: str, request: Request, *, attempts: int | None = None) -> Answer:
        """Return the answer to a call, after at most the attempts of botocore. Raises `Refusal` and `ReadTimeoutError`.

        Outside of tasks, a call has its effect at once.
        """
        kernel, task = self.kernel, self.kernel.current
        if task is None:
            return self.services[service](operation, request)
        most, key = attempts or ATTEMPTS.get(service, USUAL_ATTEMPTS), f"{task.key}:{task.draws}"
        is_refused = kernel.is_faulty(f"all attempts of {operation} are refused", kernel.rates.refused_often, key=key)
        for attempt in range(1, most + 1):
            if is_refused:
                kernel.sleep(self._latency(kernel.next_key()))
                problem: Answer | _Repeatable = self._refused(service, operation, kernel.draw(f"{key}:code"))
            else:
                problem = self._attempt(service, operation, request)
            if not isinstance(problem, _Repeatable):
                return problem
            if attempt < most and problem.is_repeated:
                longest = FIRST_PAUSE.get(service, USUAL_PAUSE) * 2 ** (attempt - 1)
                kernel.sleep(kernel.random() * longest)
                continue
            raise problem.error
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, service: str, operation: str, request: Request) -> "Answer | _Repeatable":
        kernel = self.kernel
        kernel.calls += 1
        process = kernel.current.process  # type: ignore[union-attr]
        key = kernel.next_key()
        kernel.sleep(self._latency(key))
        outage = self._outage(service, key)
        if outage is not None and outage.hangs:
            return self._unanswered(service, operation)
        if outage is not None:
            return self._refused(service, operation, outage.code)
        rates = kernel.rates
        if process.sandbox is not None and kernel.is_faulty(f"killed before {operation}", rates.killed_before, key=key):
            self._kill(process)
        if kernel.is_faulty(f"{operation} is refused", rates.refused, key=key):
            return self._refused(service, operation, kernel.random())
        answer = self._effect(service, operation, request)
        if process.sandbox is not None and kernel.is_faulty(f"killed after {operation}", rates.killed_after, key=key):
            self._kill(process)
        if kernel.is_faulty(f"the response of {operation} is lost", rates.lost_response, key=key):
            kernel.sleep(kernel.between(0.01, 0.2) if kernel.random() < 0.7 else _read_timeout(service))
            return _Repeatable(ReadTimeoutError(endpoint_url=service), is_repeated=True)
        return answer

    def _effect(self, service: str, operation: str, request: Request) -> Answer:
        try:
            answer = self.services[service](operation, request)
            left = request.get("WaitTimeSeconds", 0) if operation == "ReceiveMessage" else 0
            while left > 0 and not answer:
                left -= self._wait(request["QueueUrl"], left)
                answer = self.services[service](operation, request)
        except Refusal as refusal:
            self.kernel.note(f"{operation} {summary(request)} -> {refusal.code}")
            raise
        if self.kernel.story is not None:
            self.kernel.note(f"{operation} {summary(request)}")
        return answer

    def _wait(self, url: str, longest: float) -> float:
        """Wait for a message of a queue; return the seconds that it took."""
        waited: float = self.services["sqs"].wait(url, longest)  # type: ignore[attr-defined]
        return waited

    def _latency(self, key: str) -> float:
        kernel = self.kernel
        usual = 0.002 + 0.01 * kernel.draw(key)
        if kernel.is_faulty("a call is slow", kernel.rates.slow, key=key):
            return usual + kernel.between(0.1, 4.0)
        return usual

    def _outage(self, service: str, key: str) -> Outage | None:
        now = self.kernel.now
        for one in self.outages:
            if one.service == service and one.begin <= now < one.end and self.kernel.draw(f"{key}:outage") < one.share:
                return one
        return None

    def _unanswered(self, service: str, operation: str) -> "_Repeatable":
        self.kernel.note(f"{operation} has no answer")
        self.kernel.sleep(_read_timeout(service))
        return _Repeatable(ReadTimeoutError(endpoint_url=service), is_repeated=True)

    def _refused(self, service: str, operation: str, chance: float) -> "_Repeatable":
        codes = REFUSALS.get(service, USUAL_REFUSALS)
        code, status = codes[int(chance * len(codes))]
        self.kernel.note(f"{operation} -> {code}")
        return _Repeatable(Refusal(code, status=status), is_repeated=code not in NOT_REPEATED)

    def _kill(self, process: Process) -> None:
        self.kernel.kill(process)
        raise Killed


def _read_timeout(service: str) -> float:
    return READ_TIMEOUT.get(service, USUAL_READ_TIMEOUT)


@dataclass(frozen=True)
class _Repeatable:
    error: Exception
    is_repeated: bool


def client_error(client: Any, operation: str, refusal: Refusal) -> ClientError:
    """Return the exception that botocore raises for a refusal."""
    document = refusal.document()
    error: ClientError = client.exceptions.from_code(refusal.name or refusal.code)(document, operation)
    return error


def summary(request: Request) -> str:
    """Return a story's words for a request: the queue or the key, without bodies."""
    named = [name for name in ("QueueUrl", "QueueName", "TableName", "Path") if name in request]
    parts = [str(request[name]).rpartition("/")[2] for name in named]
    items = [request[name] for name in ("Key", "Item") if name in request]
    parts += [",".join(str(value) for value in list(item.values())[:2]) for item in items]
    if "ReceiptHandle" in request:
        parts.append(request["ReceiptHandle"][:8])
    return " ".join(parts)[:160]
