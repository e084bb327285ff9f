"""The deployed function and its event source mappings, read with the credentials of the user."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.clients.splitting.handler.settings import FunctionSettings, MappingSettings

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient


@dataclass(frozen=True, slots=True)
class DeployedFunction:
    """A function by name, with its alias if the target has one; `on_problem` receives what cannot be read."""

    functions: "LambdaClient"
    name: str
    on_problem: Callable[[str], None]

    def settings(self, otherwise: FunctionSettings) -> FunctionSettings:
        """Return the function's settings, or the given ones if the user may not read them."""
        try:
            found = self.functions.get_function_configuration(FunctionName=self.name)
        except (ClientError, BotoCoreError) as error:
            self.on_problem(f"the settings of function {self.name!r} cannot be read: {error}")
            return otherwise
        environment: Mapping[str, Any] = found.get("Environment", {})
        if problem := environment.get("Error"):
            self.on_problem(f"the variables of function {self.name!r} cannot be read: {problem.get('Message')}")
        return FunctionSettings(
            name=found["FunctionName"],
            arn=found["FunctionArn"],
            version=found.get("Version", otherwise.version),
            timeout=timedelta(seconds=found["Timeout"]),
            memory_mb=found["MemorySize"],
            log_group=found.get("LoggingConfig", {}).get("LogGroup", otherwise.log_group),
            environment=environment.get("Variables", {}),
        )

    def mapping(self, queue_arn: str) -> MappingSettings | None:
        """Return the settings of the mapping on a queue, or None if there is none or the user may not read it.

        A split disables this mapping and leaves its settings as they are. Raises `InvalidEventPattern`.
        """
        try:
            pages = self.functions.get_paginator("list_event_source_mappings").paginate(EventSourceArn=queue_arn)
            found = self._readable(one for page in pages for one in page["EventSourceMappings"] if self._is_own(one))
        except (ClientError, BotoCoreError) as error:
            self.on_problem(f"the event source mapping from {queue_arn!r} cannot be read: {error}")
            return None
        return None if found is None else MappingSettings.of(found)

    def _is_own(self, mapping: Mapping[str, Any]) -> bool:
        """Return whether a mapping is of the function, or of its alias if the target has one."""
        name, _, alias = self.name.partition(":")
        found = mapping.get("FunctionArn", "").split(":")[6:]
        return found[:1] == [name] and (not alias or found[1:] == [alias])

    def _readable(self, mappings: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        found = next(iter(mappings), None)
        if found is None or "KMSKeyArn" not in found:
            return found
        # The list omits filters that are encrypted with a customer managed key.
        whole: Mapping[str, Any] = self.functions.get_event_source_mapping(UUID=found["UUID"])
        if problem := whole.get("FilterCriteriaError"):
            self.on_problem(f"the filters of mapping {found['UUID']!r} cannot be read: {problem.get('Message')}")
        return whole
