"""Functions in CloudFormation and SAM templates: their variables, limits and event source mappings on SQS."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from signalbox.clients.splitting.handler.settings import FunctionSettings, MappingSettings
from signalbox.errors import RejectedError

FUNCTION, SAM_FUNCTION = "AWS::Lambda::Function", "AWS::Serverless::Function"
MAPPING = "AWS::Lambda::EventSourceMapping"
PATH = "aws:cdk:path"


class InvalidTemplate(RejectedError):
    """Raised when a template does not define the function that its user names."""


@dataclass(frozen=True, slots=True)
class TemplateMapping:
    """An event source mapping on a queue; `queue` is its name if the template has it as text."""

    queue: str | None
    settings: MappingSettings


@dataclass(frozen=True, slots=True)
class TemplateFunction:
    """A function of a template. `unresolved` names the variables and properties whose values are references."""

    variables: Mapping[str, str]
    timeout_seconds: int | None
    memory_mb: int | None
    mappings: tuple[TemplateMapping, ...]
    unresolved: tuple[str, ...]

    def applied_to(self, settings: FunctionSettings) -> FunctionSettings:
        """Return the settings with the template's values; references keep the value of `settings`."""
        timeout = settings.timeout if self.timeout_seconds is None else timedelta(seconds=self.timeout_seconds)
        memory = settings.memory_mb if self.memory_mb is None else self.memory_mb
        variables = {**settings.environment, **self.variables}
        return replace(settings, timeout=timeout, memory_mb=memory, environment=variables)

    def mapping(self, queue: str) -> MappingSettings | None:
        """Return the settings of the mapping on a queue; the only mapping without a queue's name applies to any."""
        for one in self.mappings:
            if one.queue == queue:
                return one.settings
        unnamed = [one for one in self.mappings if one.queue is None]
        return unnamed[0].settings if len(unnamed) == 1 else None


def template_function(template: object, resource: str | None) -> TemplateFunction:
    """Return a function of a parsed template by its logical id or construct path; without one, its only function.

    Raises `InvalidTemplate`, and `InvalidEventPattern` for a mapping's filters.
    """
    resources = template.get("Resources") if isinstance(template, Mapping) else None
    if not isinstance(template, Mapping) or not isinstance(resources, Mapping):
        raise InvalidTemplate("the template has no `Resources`")
    name = _name_of(resources, resource)
    properties = _properties(resources[name])
    shared = _section(_section(template, "Globals"), "Function") if _is_sam(resources[name]) else {}
    variables = {**_variables(shared), **_variables(properties)}
    limits = {key: properties.get(key, shared.get(key)) for key in ("Timeout", "MemorySize")}
    named = {f"{key}": value for key, value in (*variables.items(), *limits.items()) if value is not None}
    return TemplateFunction(
        variables={key: text for key, value in variables.items() if (text := _text(value)) is not None},
        timeout_seconds=_number(limits["Timeout"]),
        memory_mb=_number(limits["MemorySize"]),
        mappings=tuple(_mappings(resources, name)),
        unresolved=tuple(key for key, value in named.items() if _text(value) is None),
    )


def _name_of(resources: Mapping[str, Any], wanted: str | None) -> str:
    functions = {name: one for name, one in resources.items() if _type(one) in (FUNCTION, SAM_FUNCTION)}
    matching = [name for name, one in functions.items() if wanted in (None, name, _path(one))]
    if len(matching) == 1:
        return matching[0]
    known = ", ".join(f"{name} ({_path(one)})" if _path(one) else name for name, one in functions.items())
    problem = "several functions" if wanted is None and matching else f"no function {wanted!r}" if wanted else "none"
    raise InvalidTemplate(f"the template has {problem}; give --resource with one of: {known or 'no functions'}")


def _path(resource: Mapping[str, Any]) -> str:
    return str(_section(resource, "Metadata").get(PATH, "")).removesuffix("/Resource")


def _mappings(resources: Mapping[str, Any], function: str) -> Iterator[TemplateMapping]:
    for event in _section(_properties(resources[function]), "Events").values():
        if isinstance(event, Mapping) and event.get("Type") == "SQS":
            yield _mapping(resources, _section(event, "Properties"), queue="Queue")
    for one in resources.values():
        properties = _properties(one)
        if _type(one) == MAPPING and _referred(properties.get("FunctionName")) == function:
            yield _mapping(resources, properties, queue="EventSourceArn")


def _mapping(resources: Mapping[str, Any], properties: Mapping[str, Any], *, queue: str) -> TemplateMapping:
    plain = {key: value for key, value in properties.items() if not _is_reference(value)}
    return TemplateMapping(_queue_name(resources, properties.get(queue)), MappingSettings.of(plain))


def _queue_name(resources: Mapping[str, Any], value: object) -> str | None:
    if isinstance(value, str):
        return value.rpartition(":")[2]
    queue = resources.get(_referred(value) or "")
    name = _properties(queue).get("QueueName") if queue is not None else None
    return name if isinstance(name, str) else None


def _referred(value: object) -> str | None:
    """Return the logical id to which `Ref` or `Fn::GetAtt` refers."""
    if not isinstance(value, Mapping):
        return None
    found = value.get("Ref", value.get("Fn::GetAtt"))
    if isinstance(found, list) and found:
        found = found[0]
    return str(found).partition(".")[0] if found else None


def _variables(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return _section(_section(properties, "Environment"), "Variables")


def _is_reference(value: object) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::"))


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (str, int, float)) else None


def _number(value: object) -> int | None:
    text = _text(value)
    return int(text) if text is not None and text.isdecimal() else None


def _is_sam(resource: Mapping[str, Any]) -> bool:
    return _type(resource) == SAM_FUNCTION


def _type(resource: object) -> object:
    return resource.get("Type") if isinstance(resource, Mapping) else None


def _properties(resource: object) -> Mapping[str, Any]:
    return _section(resource, "Properties")


def _section(value: object, key: str) -> Mapping[str, Any]:
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}
