"""A service for tests of rules, and calls of it without a network."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fault_injection.calls import Answer, CallRule, ServiceCall, Wire


@dataclass(slots=True)
class Service:
    """A service that records the calls that it carried out."""

    document: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    calls: list[ServiceCall] = field(default_factory=list)

    async def forward(self, call: ServiceCall) -> Answer:
        self.calls.append(call)
        return Answer(self.status).with_document(self.document)

    def answer(self, rule: CallRule, service: str, action: str, *, wire: Wire = Wire.JSON, **parameters: Any) -> Answer:
        """Return the answer to a call that passes the rule."""
        return asyncio.run(rule.answer(ServiceCall(service, action, parameters, wire=wire), self.forward))


@dataclass(slots=True)
class FixedChance:
    """Chance that always hit, or never; a pick is the given one, and nothing is shuffled."""

    hits: bool = True
    picked: int = 0
    misses: tuple[str, ...] = ()
    """Rules that do not hit."""

    def is_one_in(self, _odds: int, rule: str, _resource: str) -> bool:
        return self.hits and rule not in self.misses

    def pick(self, _count: int, _rule: str, _resource: str) -> int:
        return self.picked

    def shuffled(self, items: list[Any], _rule: str, _resource: str) -> list[Any]:
        return list(items)


def code(answer: Answer) -> str:
    """Return the code of an error in JSON."""
    return str(answer.document()["__type"])
