"""Rule: a service is away, as long as the file `outages.json` in the emulator's folder names it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.fault_injection.calls import Answer, Forward, ServiceCall
from tests.fault_injection.errors import KMS_UNUSABLE, ServiceError, faults_of
from tests.fault_injection.failed_calls import NEEDS_KEY

SENDS = ("SendMessage", "SendMessageBatch")


@dataclass(frozen=True, slots=True)
class Outages:
    """Refuses the calls of services that are away. None of them is carried out."""

    file: Path
    is_encrypted: Callable[[str], bool]
    """Whether the queue of this name has a key of KMS."""

    async def answer(self, call: ServiceCall, forward: Forward) -> Answer:
        """Return the service's answer, or an error if the service is away."""
        error = next((error for name in self._away() if (error := AWAY[name](call, self.is_encrypted))), None)
        return await forward(call) if error is None else error.answer(call)

    def _away(self) -> list[str]:
        try:
            found: list[str] = json.loads(self.file.read_text())
        except FileNotFoundError:
            return []
        return found


def _of(service: str) -> Callable[[ServiceCall, Callable[[str], bool]], ServiceError | None]:
    def error(call: ServiceCall, _: Callable[[str], bool]) -> ServiceError | None:
        return faults_of(call)[1] if call.service == service else None

    return error


def _of_sends(call: ServiceCall, _: Callable[[str], bool]) -> ServiceError | None:
    return faults_of(call)[1] if call.service == "sqs" and call.action in SENDS else None


def _of_keys(call: ServiceCall, is_encrypted: Callable[[str], bool]) -> ServiceError | None:
    needs_key = call.service == "sqs" and call.action in NEEDS_KEY and is_encrypted(call.resource)
    return KMS_UNUSABLE if needs_key else _of("kms")(call, is_encrypted)


AWAY: Mapping[str, Callable[[ServiceCall, Callable[[str], bool]], ServiceError | None]] = {
    "dynamodb": _of("dynamodb"),
    "sqs sends": _of_sends,
    "kms": _of_keys,
    "connections": _of("execute-api"),
    "eks": _of("eks"),
}
