"""Simulated event source mappings of Lambda's API, and parameters of SSM: both change after a while."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tests.simulation.functions import Function, Mapping_
from tests.simulation.kernel import Kernel
from tests.simulation.services import Answer, Refusal, Request, arn_of
from tests.simulation.sqs import SimulatedSqs

CHANGES_TAKE = (1.0, 20.0)
CHANGING = ("Creating", "Enabling", "Disabling", "Deleting")
TOO_EARLY = Refusal("ResourceInUseException", "Cannot update the event source mapping because it is in use.")


@dataclass(eq=False)
class Source:
    """An event source mapping; `reader` polls its queue while it is enabled."""

    document: dict[str, Any]
    tags: dict[str, str]
    reader: Mapping_


@dataclass
class SimulatedLambda:
    """Lambda's API, as far as splitting asks it."""

    kernel: Kernel
    sqs: SimulatedSqs
    functions: Mapping[str, Function] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)

    def __call__(self, operation: str, request: Request) -> Answer:
        answer: Answer = getattr(self, f"_{operation}")(request)
        return answer

    def _ListEventSourceMappings(self, request: Request) -> Answer:  # noqa: N802 - the operations' names
        wanted = request.get("EventSourceArn"), request.get("FunctionName")
        found = [dict(one.document) for one in self.sources.values() if _is_wanted(one.document, *wanted)]
        return {"EventSourceMappings": found}

    def _CreateEventSourceMapping(self, request: Request) -> Answer:  # noqa: N802
        queue = self.sqs.queues.get(request["EventSourceArn"].rpartition(":")[2])
        if queue is None:
            raise Refusal("InvalidParameterValueException", "NonExistentQueue")
        if any(_is_wanted(one.document, request["EventSourceArn"], request["FunctionName"]) for one in self._all()):
            raise Refusal("ResourceConflictException", status=409)
        function = self.functions[request["FunctionName"].rpartition(":")[2]]
        concurrency = request.get("ScalingConfig", {}).get("MaximumConcurrency", 1000)
        reader = Mapping_(queue, function, batch_size=request["BatchSize"], concurrency=concurrency)
        reader.is_enabled = False
        uuid = self.kernel.uuid()
        document = {
            "UUID": uuid,
            "EventSourceArn": request["EventSourceArn"],
            "FunctionArn": request["FunctionName"],
            "EventSourceMappingArn": arn_of("lambda", f"event-source-mapping:{uuid}"),
        }
        self.sources[uuid] = Source(document, dict(request.get("Tags") or {}), reader)
        return self._change(uuid, "Creating", "Enabled")

    def _all(self) -> list[Source]:
        return list(self.sources.values())

    def _UpdateEventSourceMapping(self, request: Request) -> Answer:  # noqa: N802
        source = self._source(request)
        if source.document["State"] in CHANGING:
            raise TOO_EARLY
        is_enabled = request["Enabled"]
        return self._change(request["UUID"], *(("Enabling", "Enabled") if is_enabled else ("Disabling", "Disabled")))

    def _DeleteEventSourceMapping(self, request: Request) -> Answer:  # noqa: N802
        if self._source(request).document["State"] in CHANGING:
            raise TOO_EARLY
        return self._change(request["UUID"], "Deleting", "Deleted")

    def _GetEventSourceMapping(self, request: Request) -> Answer:  # noqa: N802
        return dict(self._source(request).document)

    def _ListTags(self, request: Request) -> Answer:  # noqa: N802
        return {"Tags": dict(self.sources[request["Resource"].rpartition(":")[2]].tags)}

    def _source(self, request: Request) -> Source:
        source = self.sources.get(request["UUID"])
        if source is None:
            raise Refusal("ResourceNotFoundException", status=404)
        return source

    def _change(self, uuid: str, state: str, after: str) -> Answer:
        """Begin a change; a mapping reads its queue until the change has ended."""
        self._set(uuid, state)
        self.kernel.after(self.kernel.between(*CHANGES_TAKE), partial(self._changed, uuid, after))
        return dict(self.sources[uuid].document)

    def _changed(self, uuid: str, state: str) -> None:
        source = self.sources[uuid]
        source.reader.is_enabled = state == "Enabled"
        self.kernel.note(f"the mapping of {source.reader.queue.name} is {state}")
        if state == "Deleted":
            del self.sources[uuid]
            return
        self._set(uuid, state)
        source.reader.wake()

    def _set(self, uuid: str, state: str) -> None:
        now = datetime.fromtimestamp(self.kernel.now, UTC)
        self.sources[uuid].document |= {"State": state, "LastModified": now}


def _is_wanted(document: Mapping[str, Any], source: str | None, function: str | None) -> bool:
    return source in (None, document["EventSourceArn"]) and function in (None, document["FunctionArn"])


@dataclass
class SimulatedSsm:
    """Parameters with all of their versions."""

    kernel: Kernel
    versions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def __call__(self, operation: str, request: Request) -> Answer:
        answer: Answer = getattr(self, f"_{operation}")(request)
        return answer

    def _PutParameter(self, request: Request) -> Answer:  # noqa: N802
        versions = self.versions.setdefault(request["Name"], [])
        now = datetime.fromtimestamp(self.kernel.now, UTC)
        parameter = {"Name": request["Name"], "Type": "String", "Value": request["Value"], "LastModifiedDate": now}
        versions.append({**parameter, "Version": len(versions) + 1, "Tier": "Standard", "DataType": "text"})
        return {"Version": len(versions)}

    def _GetParameter(self, request: Request) -> Answer:  # noqa: N802
        name, _, version = request["Name"].partition(":")
        versions = self.versions.get(name)
        if not versions:
            raise Refusal("ParameterNotFound")
        return {"Parameter": dict(versions[int(version) - 1 if version else -1])}

    def _GetParameterHistory(self, request: Request) -> Answer:  # noqa: N802
        return {"Parameters": [dict(one) for one in self.versions[request["Name"]]]}

    def value(self, name: str) -> str:
        return str(self.versions[name][-1]["Value"])
