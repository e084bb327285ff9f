"""Kubernetes workloads as targets: switched by other variables of their pod template, and a rollout."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from signalbox.aws.splitting.kubernetes.api import (
    ClusterGone,
    ClusterRefused,
)
from signalbox.aws.splitting.targets.original_queues import (
    OriginalQueues,
    deployed_names,
    is_switching,
    original_names,
    queues_of_split,
    switch_errors,
    target_state,
)
from signalbox.aws.splitting.targets.task_definition import flattened
from signalbox.aws.splitting.targets.workloads import Document, Workloads, annotations_of
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.queues import QueueName
from signalbox.splitting.consumers.discovery import Evidence
from signalbox.splitting.consumers.environment import Resolver, UnresolvedQueue
from signalbox.splitting.consumers.registry import ConsumedQueue, Registry
from signalbox.splitting.control.problems import note_problem
from signalbox.splitting.kubernetes.field_managers import is_given_up, is_managed, owners, returned, with_values
from signalbox.splitting.kubernetes.pod_template import ConfigMaps, Environments, PodTemplate, containers_of, env_entry
from signalbox.splitting.kubernetes.rollout import is_rolled_out, obstacle, pause
from signalbox.splitting.kubernetes.switch_record import (
    ANNOTATION,
    SwitchRecord,
    Variable,
    VariableBefore,
    is_limit_reached,
    outdated,
    read_record,
    switch_annotation,
)
from signalbox.splitting.kubernetes.template_change import TemplateChange, at_version, with_entries
from signalbox.splitting.model.observed_state import TargetState
from signalbox.splitting.model.split import Split, Stage
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import Annotations


@dataclass(frozen=True, slots=True)
class KubernetesTargets:
    """`Targets` of the kinds `Deployment`, `StatefulSet` and `Rollout`.

    A switched template has an annotation with each variable's entry before the switch, and nothing else is stored:
    what the owner changes during the split stays.
    """

    workloads: Workloads
    originals: OriginalQueues
    resolver: Resolver
    annotations: Annotations
    now: Callable[[], datetime]

    def find(self, registry: Registry) -> Sequence[ConsumedQueue]:
        """Return the queues that a workload consumes. Raises `UnsuitableWorkload` and `UnresolvedQueue`."""
        template = self._template(registry.target, self.workloads.suitable(registry.target))
        found = self.originals.found(registry, template.queue_names)
        split = registry.of(queue.queue_id for queue in found)
        _chosen(registry.target, template.renamed(split, {}))  # raises for what a local command could not be given
        return found

    def environment(self, registry: Registry, names: Mapping[QueueName, QueueName]) -> Mapping[str, str]:
        """Return the variables for a local command: the values before the split with the queue names replaced."""
        workload = self.workloads.existing(registry.target)
        template = self._template(registry.target, workload)
        if not template.reading(registry).names <= names.keys():
            template = self._template(registry.target, _before(registry.target, workload))
        with queues_of_split(registry.target, names) as check:
            check(template.reading(registry).names)
            return _chosen(registry.target, template.renamed(registry, names))

    def evidence(self, target: Target) -> Evidence:
        """Return the variables of a workload's containers; those from secrets are left out."""
        template = self._template(target, self.workloads.existing(target))
        return Evidence(environments=dict(template.environments.items()))

    def observe(self, split: Split, registry: Registry) -> TargetState:
        """Return which queues the workload's pods read.

        The requested state counts when the rollout is complete and every pod has it; terminating pods count. On the
        way back, Signalbox may also manage no field of the workload any more.
        """
        try:
            workload = self.workloads.find(split.target)
            return TargetState.GONE if workload is None else self._state(workload, split, registry)
        except ClusterGone:
            return TargetState.GONE
        except ClusterRefused as error:
            if not self.workloads.has_namespace(split.target):
                return TargetState.GONE  # with the role that allowed to read its workloads
            raise EffectFailed(str(error)) from error  # a right that is missing for a moment ends no split

    def switch(self, split: Split, registry: Registry) -> None:
        """Write the names of the temporary queues into the pod template."""

        def write(workload: Document) -> None:
            change = self._switched(workload, split, registry)
            self.workloads.write(split.target, workload, change)
            if split.stage is Stage.SPLIT:
                self._note_managers(split.target, workload, change)

        with switch_errors(split.target):
            self._check_limit(split)
            self.workloads.attempt(split.target, write)
            self.workloads.attempt(split.target, lambda workload: self._share_values(split.target, workload))
            self._count_switch(split.target)

    def switch_back(self, split: Split, registry: Registry) -> None:
        """Restore the variables, then hand their fields over to their managers."""

        def restore(workload: Document) -> None:
            change = self._restored(workload, split, registry)
            if change is not None:
                self.workloads.write(split.target, workload, change)

        with switch_errors(split.target):
            self.workloads.attempt(split.target, restore)
            self.workloads.attempt(split.target, lambda workload: self._hand_over(split.target, workload))

    def _state(self, workload: Document, split: Split, registry: Registry) -> TargetState:
        config_maps = self.workloads.config_maps(split.target)
        state = self._reads(workload["spec"]["template"], split, registry, config_maps)
        is_wanted = state is (TargetState.TEMPORARY if is_switching(split) else TargetState.ORIGINAL)
        if not is_wanted:
            return state
        if split.stage is Stage.RESTORING and _has_remnants(workload):
            return TargetState.MIXED  # an interrupted way back
        kind = split.target.kind
        if is_rolled_out(kind, workload) and self._are_pods(state, workload, split, registry, config_maps):
            return state
        if reason := obstacle(kind, workload) or pause(kind, workload):
            self._report(split, f"{split.target} {reason}", is_final=pause(kind, workload) is None)
        return TargetState.CHANGING

    def _are_pods(
        self,
        state: TargetState,
        workload: Document,
        split: Split,
        registry: Registry,
        config_maps: ConfigMaps,
    ) -> bool:
        running = self.workloads.running_pods(split.target, workload)
        return all(self._reads(pod, split, registry, config_maps) is state for pod in running)

    def _reads(self, pod: Document, split: Split, registry: Registry, config_maps: ConfigMaps) -> TargetState:
        reading = PodTemplate(pod, self.resolver, config_maps).reading(registry)
        state = target_state(reading.names, split)
        return state if reading.is_complete or state is TargetState.ORIGINAL else TargetState.MIXED

    def _report(self, split: Split, text: str, *, is_final: bool) -> None:
        """End a start that cannot succeed; otherwise the split's status says what it waits for."""
        if is_final and split.stage is Stage.STARTING and split.live:
            raise EffectRefused(text)
        note_problem(self.annotations, split.target, text, now=self.now())

    def _share_values(self, target: Target, workload: Document) -> None:
        """Let managers that apply a variable with `valueFrom` replace its literal value at any time."""
        managed, pod = workload["metadata"].get("managedFields", ()), workload["spec"]["template"]
        variables = {
            key: before.owners
            for key, before in read_record(annotations_of(pod), str(target)).before.items()
            if before.entry is not None and "valueFrom" in before.entry
        }
        fields = with_values(managed, variables) if variables else managed
        if fields != managed:
            self.workloads.set_managed_fields(target, [at_version(workload)], fields)

    def _note_managers(self, target: Target, workload: Document, change: TemplateChange) -> None:
        """Note which managers have set the variables of a switched workload again."""
        managed, pod = workload["metadata"].get("managedFields", ()), workload["spec"]["template"]
        variables = [key for key, entry in change.entries.items() if env_entry(pod, *key) != entry]
        managers = {str(one.entry.get("manager")) for key in variables for one in owners(managed, *key)}
        names = ", ".join(sorted(name for _, name in variables))
        text = f"{target}: {', '.join(sorted(managers)) or 'its owner'} has set {names} again during the split"
        note_problem(self.annotations, target, text, now=self.now())

    def _check_limit(self, split: Split) -> None:
        noted = self.annotations.of(split.target)
        if is_limit_reached(noted, self.now()):
            raise EffectRefused(
                f"{split.target} is set back to its original queues again and again, by its owner or by a controller; "
                "pause that controller while the queue is split"
            )
        if names := outdated(noted, self.now()):
            self.annotations.remove(split.target, names)

    def _count_switch(self, target: Target) -> None:
        self.annotations.put(target, switch_annotation(self.now()), str(target))

    def _switched(self, workload: Document, split: Split, registry: Registry) -> TemplateChange:
        template = self._template(split.target, workload)
        if template.reading(registry).names.isdisjoint(queue.original for queue in split.queues):
            raise EffectRefused(f"{split.target} no longer reads the queues with which its split began")
        changed = template.renamed(registry, deployed_names(split))
        originals = template.renamed(registry, original_names(split))
        known = read_record(annotations_of(workload["spec"]["template"]), str(split.target))
        entries: dict[Variable, Document | None] = {}
        before: dict[Variable, VariableBefore] = {}
        for container, variables in changed.items():
            for name, value in variables.items():
                key, entry = (container, name), {"name": name, "value": value}
                entries[key] = entry
                if env_entry(template.pod, container, name) != entry:
                    before[key] = _variable_before(workload, key)
                else:
                    original = VariableBefore({"name": name, "value": originals[container][name]})
                    before[key] = known.before.get(key, original)
        return TemplateChange(entries, on_template=SwitchRecord(str(split.target), before).text())

    def _restored(self, workload: Document, split: Split, registry: Registry) -> TemplateChange | None:
        """Return the change that undoes the switch, or None if nothing of it is left in the pod template."""
        pod, managed = workload["spec"]["template"], workload["metadata"].get("managedFields", ())
        known = read_record(annotations_of(pod), str(split.target))
        entries: dict[Variable, Document | None] = {}
        originals = self._template(split.target, workload).renamed_where_found(registry, original_names(split))
        for container, variables in originals.items():
            for name, value in variables.items():
                key, entry = (container, name), env_entry(pod, container, name)
                if entry is None or entry.get("value", "") == value or "valueFrom" in entry:
                    continue  # the owner changed it, and it names no temporary queue
                before = known.before.get(key, VariableBefore({"name": name, "value": value}))
                entries[key] = None if is_given_up(managed, before.owners, container, name) else before.entry
        if not entries and ANNOTATION not in annotations_of(pod):
            return None
        return TemplateChange(entries, on_workload=known.text())

    def _hand_over(self, target: Target, workload: Document) -> None:
        """Give the fields of restored variables to their managers, and remove what is left of Signalbox."""
        if not _has_remnants(workload):
            return
        pod, metadata = workload["spec"]["template"], workload["metadata"]
        known = read_record(annotations_of(workload), str(target))
        restored = {
            key: before.owners
            for key, before in known.before.items()
            if before.entry is not None and env_entry(pod, *key) == before.entry
        }
        operations: list[dict[str, object]] = [at_version(workload)]
        if ANNOTATION in annotations_of(workload):
            operations.append({"op": "remove", "path": f"/metadata/annotations/{ANNOTATION.replace('/', '~1')}"})
        self.workloads.set_managed_fields(target, operations, returned(metadata.get("managedFields", ()), restored))

    def _template(self, target: Target, workload: Document) -> PodTemplate:
        return PodTemplate(workload["spec"]["template"], self.resolver, self.workloads.config_maps(target))


def _before(target: Target, workload: Document) -> Document:
    """Return a workload in which the variables of its record have the values from before the switch."""
    pod = workload["spec"]["template"]
    before = read_record(annotations_of(pod), str(target)).before
    containers = []
    for container in containers_of(pod):
        changes = {name: one.entry for (of, name), one in before.items() if of == container["name"]}
        containers.append({**container, "env": with_entries(container.get("env", ()), changes)})
    return {**workload, "spec": {"template": {"spec": {"containers": containers}}}}


def _variable_before(workload: Document, variable: Variable) -> VariableBefore:
    entry = env_entry(workload["spec"]["template"], *variable)
    managed = workload["metadata"].get("managedFields", ())
    return VariableBefore(entry, tuple(owners(managed, *variable)) if entry is not None else ())


def _chosen(target: Target, environments: Environments) -> dict[str, str]:
    """Return the variables of a local command: those of the target's container, if it names one."""
    if target.container is None:
        return flattened(environments)
    if target.container not in environments:
        known = ", ".join(environments)
        raise UnresolvedQueue(f"{target} has no container {target.container!r}; it has {known}")
    return environments[target.container]


def _has_remnants(workload: Document) -> bool:
    return ANNOTATION in annotations_of(workload) or is_managed(workload["metadata"].get("managedFields", ()))
