"""The rules of an emulator with fault injection, in the order in which a call passes them.

Calls pass the rules after their signatures and permissions were checked. Rules that withhold entries of a batch change
the body of the request, which the signature covers: the gateway in front of MiniStack is too early for them.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original
from tests.fault_injection.calls import Answer, CallRule, Clock, Forward, ServiceCall, ServiceRequest, parse_call
from tests.fault_injection.chance import Chance
from tests.fault_injection.failed_calls import FailedCalls
from tests.fault_injection.iam_changes import IamChanges, Policies, Principal
from tests.fault_injection.mapping_states import MappingStates
from tests.fault_injection.outages import Outages
from tests.fault_injection.partial_batches import PartialBatches
from tests.fault_injection.queue_names import RecentQueues
from tests.fault_injection.queue_policies import QueuePolicies
from tests.fault_injection.queue_tags import QueueTags
from tests.fault_injection.stale_views import StaleViews

DISPATCH = "ministack.app:_dispatch_service_request"
HANDLERS = "ministack.app:SERVICE_HANDLERS"

Raw = tuple[int, Mapping[str, str], Any]
"""MiniStack's answer: status, headers and body."""
Handler = Callable[..., Awaitable[Raw]]


class FaultInjection:
    """The state of all rules; the same seed repeats the same faults."""

    def __init__(
        self,
        seed: int,
        clock: Clock,
        *,
        is_encrypted: Callable[[str], bool],
        policies: Callable[[Principal], Policies],
        queue_policy: Callable[[str], str],
        queue_tags: Callable[[str], Mapping[str, str] | None],
        outages: Path,
    ) -> None:
        """Take lookups of MiniStack: whether a queue has a key of KMS, its tags, and policies of principals and queues.

        `outages` is the file with the services that are away.
        """
        self.chance = Chance(seed)
        self.iam = IamChanges(clock, policies)
        self.queue_policies = QueuePolicies(clock, self.chance, queue_policy)
        queue_names = RecentQueues(clock)
        self.mappings = MappingStates(clock, queue_names.is_new)
        self.call_rules: tuple[CallRule, ...] = (
            Outages(outages, is_encrypted),
            FailedCalls(self.chance, is_encrypted),
            queue_names,
            QueueTags(clock, queue_tags),
            StaleViews(clock),
            self.iam,
            self.queue_policies,
            PartialBatches(self.chance),
        )

    async def answer(self, call: ServiceCall, forward: Forward) -> Answer:
        """Return the answer to a call that passes all rules; `forward` carries it out."""
        return await reduce(_before, reversed(self.call_rules), forward)(call)


def _before(forward: Forward, rule: CallRule) -> Forward:
    async def answer(call: ServiceCall) -> Answer:
        return await rule.answer(call, forward)

    return answer


def through(faults: FaultInjection, service: str, handler: Handler) -> Handler:
    """Return a handler of a service's requests that passes them through the rules."""

    async def handle(
        method: str, path: str, headers: Mapping[str, str], body: bytes, query: Mapping[str, Any]
    ) -> tuple[int, dict[str, str], bytes]:
        request = ServiceRequest(method, path, headers, body, query)
        parsed = parse_call(service, request)

        async def forward(call: ServiceCall) -> Answer:
            sent = request if call is parsed else request.with_call(call)
            status, answered, content = await handler(sent.method, sent.path, sent.headers, sent.body, sent.query)
            return Answer(status, content.encode() if isinstance(content, str) else content, answered)

        answer = await faults.answer(parsed, forward)
        return answer.status, dict(answer.headers), answer.body

    return handle


def patch(faults: FaultInjection) -> Patch:
    """Return the patch for these rules."""

    def replacements() -> Mapping[str, object]:
        handlers: Mapping[str, Handler] = original(HANDLERS)
        return {HANDLERS: {service: through(faults, service, handler) for service, handler in handlers.items()}}

    return Patch(sources={DISPATCH: "17e5ef6dcfa0d4e6"}, replacements=replacements)
