"""Rules: ListQueues and the approximate counters of a queue show the past."""

from dataclasses import dataclass, field

from tests.fault_injection.calls import Answer, Clock, Forward, ServiceCall, Wire

# Less than the shortest time that a local stage's settings wait for counters (`split_empty_seconds`), as on AWS.
STALE_SECONDS = 2.0

COUNTER = "ApproximateNumberOfMessages"  # the counters' names begin with it


@dataclass(slots=True)
class StaleViews:
    """The queues that lists still have or do not have yet, and the counters that are shown."""

    clock: Clock
    created: dict[str, float] = field(default_factory=dict)
    """Times of creation by URL."""
    deleted: dict[str, float] = field(default_factory=dict)
    counters: dict[str, tuple[float, dict[str, str]]] = field(default_factory=dict)
    """By queue, the time of a count and its result."""

    async def answer(self, call: ServiceCall, forward: Forward) -> Answer:
        """Return the answer, with old lists and counters."""
        answer = await forward(call)
        if call.service != "sqs" or call.wire is not Wire.JSON or not answer.is_success:
            return answer
        if call.action == "CreateQueue":
            self.created.setdefault(answer.document()["QueueUrl"], self.clock())
        elif call.action == "DeleteQueue":
            self.created.pop(call.parameters["QueueUrl"], None)
            self.deleted[call.parameters["QueueUrl"]] = self.clock()
        elif call.action == "ListQueues":
            return self._old_list(call, answer)
        elif call.action == "GetQueueAttributes":
            return self._old_counters(call, answer)
        return answer

    def _old_list(self, call: ServiceCall, answer: Answer) -> Answer:
        now, document = self.clock(), answer.document()
        too_new = {url for url, at in self.created.items() if now - at < STALE_SECONDS}
        urls = [url for url in document.get("QueueUrls", []) if url not in too_new]
        if "NextToken" not in document and "NextToken" not in call.parameters:
            prefix = call.parameters.get("QueueNamePrefix", "")
            gone = [url for url, at in self.deleted.items() if now - at < STALE_SECONDS and url not in urls]
            room = call.parameters.get("MaxResults", 1000) - len(urls)
            urls += [url for url in gone if url.rpartition("/")[2].startswith(prefix)][: max(0, room)]
        return answer.with_document({**document, "QueueUrls": urls})

    def _old_counters(self, call: ServiceCall, answer: Answer) -> Answer:
        document = answer.document()
        attributes = document.get("Attributes", {})
        current = {name: value for name, value in attributes.items() if name.startswith(COUNTER)}
        counted_at, shown = self.counters.get(call.resource, (float("-inf"), {}))
        if self.clock() - counted_at >= STALE_SECONDS or not current.keys() <= shown.keys():
            self.counters[call.resource] = (self.clock(), current)
            return answer
        old = {name: shown[name] for name in current}
        return answer.with_document({**document, "Attributes": {**attributes, **old}})
