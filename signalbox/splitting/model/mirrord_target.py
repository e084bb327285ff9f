"""The `target` of a mirrord.json: the deployed consumer of a session."""

from collections.abc import Mapping

from signalbox.documents import Problems, Section, shown
from signalbox.splitting.model.target import InvalidTarget, Target

TARGETLESS = "targetless"

# The fields of mirrord's long form of a path: a kind with the workload's name.
KIND_FIELDS = {
    "deployment": "deployment",
    "rollout": "rollout",
    "stateful_set": "statefulset",
    "statefulset": "statefulset",
    "pod": "pod",
    "job": "job",
    "cron_job": "cronjob",
    "cronjob": "cronjob",
    "service": "service",
    "replica_set": "replicaset",
    "replicaset": "replicaset",
    "daemon_set": "daemonset",
    "daemonset": "daemonset",
}
EXPECTED = "a text such as deployment/meme-app/main, or an object with path and namespace"


def configured_target(document: object) -> Target | None:
    """Return the target of a mirrord.json, or None if it has none. Raises `InvalidTarget` with all problems."""
    value = document.get("target") if isinstance(document, Mapping) else None
    if value is None or value == TARGETLESS:
        return None
    problems = Problems()
    found = _target(value, problems)
    problems.refuse(InvalidTarget)
    return found


def _target(value: object, problems: Problems) -> Target | None:
    if not isinstance(value, Mapping) or not set(KIND_FIELDS).isdisjoint(value):
        return _path(value, "target", problems)
    section = Section.of(value, "target", problems)
    section.refuse_unknown(("path", "namespace"))
    found, namespace = _path(section.fields.get("path"), section.at("path"), problems), section.text("namespace")
    if found is None or namespace is None or not found.is_on_kubernetes:
        return found
    return section.attempt("namespace", lambda: found.placed(namespace, None), default=None)


def _path(value: object, path: str, problems: Problems) -> Target | None:
    text = _long_form(Section.of(value, path, problems)) if isinstance(value, Mapping) else value
    if isinstance(text, str):
        return _parsed(text, path, problems) if text else None
    problems.add(path, f"expected {EXPECTED}, not {shown(text)}")
    return None


def _long_form(section: Section) -> str:
    """Return the text of an object such as `{"deployment": "meme-app"}`; empty if it has problems."""
    kinds = [name for name in KIND_FIELDS if name in section.fields]
    if len(kinds) != 1:
        section.problems.add(section.path, f"expected exactly one of {', '.join(KIND_FIELDS)}")
        return ""
    section.refuse_unknown((kinds[0], "container"))
    name, container = section.required_text(kinds[0]), section.text("container")
    return f"{KIND_FIELDS[kinds[0]]}/{name}" + (f"/container/{container}" if container else "") if name else ""


def _parsed(text: str, path: str, problems: Problems) -> Target | None:
    try:
        return Target.parse(text)
    except InvalidTarget as error:
        problems.add(path, str(error))
        return None
