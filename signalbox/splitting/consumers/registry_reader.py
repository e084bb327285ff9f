"""The reader that converts both kinds of mirrord registries into a `Registry`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from signalbox.documents import Section, shown
from signalbox.splitting.consumers.property_lists import PropertyLists, queue_properties
from signalbox.splitting.consumers.queue_reference import QueueReference
from signalbox.splitting.consumers.registry import (
    DEFAULT_SWITCH_TIMEOUT,
    NameSource,
    RegisteredQueue,
    Registry,
    SourceKind,
)
from signalbox.splitting.model.filters import Compiler, InvalidExpression
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.target import KUBERNETES, Target, TargetKind
from signalbox.splitting.queues.names import DEFAULT_TEMPLATE, template_problem

ALL_VALUES = ".[]"
SOURCE_KINDS = {
    TargetKind.LAMBDA: (SourceKind.VARIABLE, SourceKind.VARIABLES_LIKE, SourceKind.EVENT_SOURCE),
    **dict.fromkeys((TargetKind.ECS_SERVICE, *KUBERNETES), (SourceKind.VARIABLE, SourceKind.VARIABLES_LIKE)),
}
API_VERSIONS = {
    TargetKind.DEPLOYMENT: "apps/v1",
    TargetKind.STATEFUL_SET: "apps/v1",
    TargetKind.ROLLOUT: "argoproj.io/v1alpha1",
}
# Both replace all pods in a rollout of the workload here; `isolatePods` only matters to mirrord's operator.
STRATEGIES = ("standard", "isolatePods")
EVERY_POD = "all"
MOST_SECONDS = 2**32 - 1  # mirrord's own limit
# The fields of `nameSource` and of `appConfig.queue[]`; mirrord has no event sources.
OLD_FIELDS = {
    "envVar": SourceKind.VARIABLE,
    "regexPattern": SourceKind.VARIABLES_LIKE,
    "eventSource": SourceKind.EVENT_SOURCE,
}
NEW_FIELDS = {"env": SourceKind.VARIABLE, "envLike": SourceKind.VARIABLES_LIKE, "eventSource": SourceKind.EVENT_SOURCE}
# Values of `queueType` and `kind`. Only the first is split here; a target may also have queues of the others.
OLD_KINDS = ("SQS", "RMQ")
NEW_KINDS = (
    *("sqs", "kafka", "rmq", "googlePubSub", "azureServiceBus"),
    *("redisPubSub", "temporal", "bullMq", "nats", "natsPubSub"),
)


@dataclass(frozen=True, slots=True)
class RegistryConverter:
    """Reads registry resources; problems are added to their section."""

    compiler: Compiler
    prefix: str
    property_lists: PropertyLists

    def workload_queue_registry(self, spec: Section) -> Registry | None:
        """Return the registry in a `MirrordWorkloadQueueRegistry` spec; None if its target is not supported."""
        spec.refuse_unknown(("queues", "consumer", "workloadRestartTimeout"))
        consumer = spec.section("consumer")
        consumer.refuse_unknown(("name", "container", "workloadType"))
        target = _target(consumer, "workloadType")
        container = consumer.text("container")
        queues = optional_section(spec, "queues")
        sections = [(name, queues.section(name)) for name in queues.fields]
        on_sqs = [(name, one) for name, one in sections if _is_on_sqs(one, "queueType", OLD_KINDS)]
        read = tuple(self._old_queue(one, name, target, container) for name, one in on_sqs)
        timeout = _seconds(spec, "workloadRestartTimeout")
        return _registry(spec, target, read, timeout) if target else None

    def split_config(self, spec: Section, namespace: str) -> Registry | None:
        """Return the registry in a `MirrordSplitConfig` spec; None if its target is not supported.

        A property list is looked up in `namespace`, that of the target, and then in the operator's.
        """
        spec.refuse_unknown(("targetRef", "queues", "clientConfigs", "restart", "drainTimeout", "tmpNameTemplate"))
        _refuse_client(optional_section(spec, "clientConfigs"), "sqs")
        reference = spec.section("targetRef")
        reference.refuse_unknown(("apiVersion", "kind", "name"))
        target = _target(reference, "kind")
        _check_api_version(reference, target)
        on_sqs = [one for one in spec.sections("queues") if _is_on_sqs(one, "kind", NEW_KINDS)]
        read = tuple(self._new_queue(queue, target, namespace) for queue in on_sqs)
        restart = optional_section(spec, "restart")
        _check_restart(restart, target)
        timeout, drain_timeout = _seconds(restart, "timeout"), _seconds(spec, "drainTimeout")
        template = self._template(spec)
        if target is None:
            return None
        return replace(_registry(spec, target, read, timeout), drain_timeout=drain_timeout, name_template=template)

    def _old_queue(self, queue: Section, name: str, target: Target | None, container: str | None) -> RegisteredQueue:
        known = ("queueType", "nameSource", "fallbackName", "namesFromJsonMap", "tags", "sns", "s3Event")
        queue.refuse_unknown(known)
        # Only a parameter needs no source: its own value is the name.
        may_be_missing = target is not None and target.kind is TargetKind.SSM_PARAMETER
        names = optional_section(queue, "nameSource") if may_be_missing else queue.section("nameSource")
        names.refuse_unknown(tuple(OLD_FIELDS))
        source = replace(
            self._source(names, OLD_FIELDS, target),
            selector=ALL_VALUES if queue.flag("namesFromJsonMap") else None,
            containers=(container,) if container else (),
        )
        source = _with_fallback(source, queue, "fallbackName")
        tags, formats = queue.texts_by_name("tags") or {}, (queue.flag("sns"), queue.flag("s3Event"))
        return RegisteredQueue(QueueId(name), (source,), tags, *formats)

    def _new_queue(self, queue: Section, target: Target | None, namespace: str) -> RegisteredQueue:
        queue.refuse_unknown(("id", "kind", "clientConfig", "queueConfig", "appConfig"))
        _refuse_client(queue, "clientConfig")
        application = queue.section("appConfig")
        application.refuse_unknown(("queue",))
        sources = tuple(self._new_source(source, target) for source in application.sections("queue"))
        if not sources:
            application.problem("queue", "is missing or empty")
        tags, *formats = queue_properties(queue, self.property_lists, namespace)
        return RegisteredQueue(QueueId(queue.required_text("id")), sources, tags, *formats)

    def _new_source(self, section: Section, target: Target | None) -> NameSource:
        section.refuse_unknown((*NEW_FIELDS, "fallback", "valueSelector", "valuePattern", "containers"))
        self._check_program(section, "valueSelector")
        self._check_pattern(section, "valuePattern", self.compiler.capture)
        source = replace(
            self._source(section, NEW_FIELDS, target),
            selector=section.text("valueSelector"),
            pattern=section.text("valuePattern"),
            containers=section.texts("containers"),
        )
        return _with_fallback(source, section, "fallback")

    def _source(self, section: Section, words: Mapping[str, SourceKind], target: Target | None) -> NameSource:
        given = {kind: text for word, kind in words.items() if (text := section.text(word))}
        if target and target.kind is TargetKind.SSM_PARAMETER:
            return NameSource(SourceKind.VALUE, variable=given.get(SourceKind.VARIABLE))
        variable = given.pop(SourceKind.VARIABLE, None) if SourceKind.EVENT_SOURCE in given else None
        allowed = SOURCE_KINDS[target.kind] if target else tuple(words.values())
        if len(given) != 1 or not set(given) <= set(allowed):
            expected = ", ".join(word for word, kind in words.items() if kind in allowed)
            section.problems.add(section.path, f"expected exactly one of {expected}")
            return NameSource(SourceKind.VARIABLE)
        ((kind, key),) = given.items()
        if kind is SourceKind.VARIABLES_LIKE:
            name = next(word for word, found in words.items() if found is kind)
            self._check_pattern(section, name, partial(self.compiler.pattern, case_sensitive=True))
        return NameSource(kind, key, variable=variable)

    def _template(self, spec: Section) -> str:
        template = spec.text("tmpNameTemplate")
        problem = template_problem(template, prefix=self.prefix) if template else None
        if problem:
            spec.problem("tmpNameTemplate", problem)
        return template or DEFAULT_TEMPLATE

    def _check_program(self, section: Section, name: str) -> None:
        text = section.text(name)
        try:
            if text is not None and text != ALL_VALUES:
                self.compiler.program(text)
        except InvalidExpression as error:
            section.problem(name, f"not a jq program: {error}")

    def _check_pattern(self, section: Section, name: str, compiled: Callable[[str], object]) -> None:
        text = section.text(name)
        try:
            if text is not None:
                compiled(text)
        except InvalidExpression as error:
            section.problem(name, f"not a regular expression: {error}")


def other_brokers(spec: Section) -> Iterator[str]:
    """Yield the id and kind of each queue of a spec that is not on SQS."""
    entries: list[tuple[str | None, str | None]]
    if isinstance(spec.fields.get("queues"), Mapping):
        queues = spec.section("queues")
        entries = [(name, queues.section(name).text("queueType")) for name in queues.fields]
    else:
        entries = [(one.text("id"), one.text("kind")) for one in spec.sections("queues")]
    yield from (f"{name} ({kind})" for name, kind in entries if kind in (*OLD_KINDS[1:], *NEW_KINDS[1:]))


def _registry(
    spec: Section, target: Target, queues: tuple[RegisteredQueue, ...], timeout: timedelta | None
) -> Registry:
    if not spec.fields.get("queues"):
        spec.problem("queues", "is missing or empty, so there is nothing to split")
    return Registry(target, queues, switch_timeout=timeout or DEFAULT_SWITCH_TIMEOUT)


def _target(section: Section, kind: str) -> Target | None:
    found, name = section.required_text(kind), section.required_text("name")
    if not found or not name:
        return None
    target = section.attempt(kind, lambda: Target.of(found, name), default=None)
    if target is not None and (target.name != name or target.namespace):
        section.problem("name", f"expected a workload's name alone, not {shown(name)}: see metadata.namespace")
    return target


def _check_api_version(reference: Section, target: Target | None) -> None:
    found, expected = reference.text("apiVersion"), API_VERSIONS.get(target.kind) if target else None
    if found is not None and expected is not None and found != expected:
        reference.problem("apiVersion", f"expected {expected}, not {shown(found)}")


def _check_restart(restart: Section, target: Target | None) -> None:
    is_on_kubernetes = target is not None and target.is_on_kubernetes
    restart.refuse_unknown(("strategy", "timeout", *(["waitForPods"] if is_on_kubernetes else [])))
    strategies = STRATEGIES if is_on_kubernetes else STRATEGIES[:1]
    if restart.fields.get("strategy") not in (None, *strategies):
        restart.problem("strategy", f"only {' and '.join(strategies)} {_are(strategies)} supported")
    if is_on_kubernetes and restart.fields.get("waitForPods") != EVERY_POD:
        restart.whole_number("waitForPods")  # every pod is waited for, whatever the number


def _are(words: Sequence[str]) -> str:
    return "is" if len(words) == 1 else "are"


def _is_on_sqs(queue: Section, name: str, kinds: Sequence[str]) -> bool:
    if queue.fields.get(name) not in kinds:
        queue.problem(name, f"expected {' or '.join(kinds)}, not {shown(queue.fields.get(name))}")
    return queue.fields.get(name) not in kinds[1:]


def _refuse_client(section: Section, name: str) -> None:
    if section.text(name) is not None:
        section.problem(name, "only the stage's own account and region are supported")


def _with_fallback(source: NameSource, section: Section, name: str) -> NameSource:
    fallback = section.text(name)
    if fallback is not None and source.kind is not SourceKind.VARIABLE:
        section.problem(name, "is allowed only for a variable with an exact name")
    if fallback is not None and not QueueReference(fallback).is_plain:
        # It becomes a variable of the deployed program, and a text of NODE_OPTIONS, for example, is code.
        section.problem(name, f"expected the name, URL or ARN of a queue of SQS, not {shown(fallback)}")
    return replace(source, fallback=fallback)


def optional_section(section: Section, name: str) -> Section:
    """Return an optional object; empty if it is absent."""
    if section.fields.get(name) is None:
        return Section({}, section.at(name), section.problems)
    return section.section(name)


def _seconds(section: Section, name: str) -> timedelta | None:
    number = section.whole_number(name)
    if number is not None and number > MOST_SECONDS:
        section.problem(name, f"expected at most {MOST_SECONDS}, not {shown(number)}")
        return None
    return None if number is None else timedelta(seconds=number)
