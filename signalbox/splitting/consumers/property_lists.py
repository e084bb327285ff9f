"""mirrord's property lists: the settings of a queue that a `MirrordSplitConfig` names by `queueConfig`."""

import json
from collections.abc import Mapping

from signalbox.documents import Section, shown

NAMES = ("sns", "s3_event", "tags")
# Since operator 3.191.0 all namespaces share the property lists of the operator's, by default of this name.
OPERATOR_NAMESPACE = "mirrord"
NOT_READ = "config maps and secrets are not read; give each property its `value`"

PropertyLists = Mapping[tuple[str, str], Section]  # specs by namespace and name


def queue_properties(queue: Section, lists: PropertyLists, namespace: str) -> tuple[dict[str, str], bool, bool]:
    """Return the tags, and whether messages are SNS notifications and S3 events.

    The list is looked up in `namespace`, that of the target, and then in the operator's.
    """
    name, places = queue.text("queueConfig"), dict.fromkeys((namespace, OPERATOR_NAMESPACE))
    if name is None:
        return {}, False, False
    spec = next((lists[place, name] for place in places if (place, name) in lists), None)
    if spec is None:
        queue.problem("queueConfig", f"there is no MirrordPropertyList {name!r} in namespace {' or '.join(places)}")
        return {}, False, False
    spec.refuse_unknown(("properties", "propertiesFrom"))
    if spec.fields.get("propertiesFrom"):
        spec.problem("propertiesFrom", NOT_READ)
    given = _given(spec)
    return _tags(given.get("tags")), _yes(given.get("sns")), _yes(given.get("s3_event"))


def _given(spec: Section) -> dict[str, Section]:
    """Return the properties with a value, by name."""
    given = {}
    for entry in spec.sections("properties"):
        name = entry.required_text("name")
        if name not in NAMES:
            entry.problem("name", f"unknown property {name!r}; known: {', '.join(NAMES)}")
        elif entry.fields.get("valueFrom") is not None:
            entry.problem("valueFrom", NOT_READ)
        else:
            given[name] = entry
    return given


def _yes(entry: Section | None) -> bool:
    value = entry.fields.get("value") if entry else "false"
    if entry and value not in ("true", "false"):
        entry.problem("value", f"expected 'true' or 'false', not {shown(value)}")
    return value == "true"


def _tags(entry: Section | None) -> dict[str, str]:
    if entry is None:
        return {}
    try:
        tags = json.loads(entry.required_text("value") or "{}")
    except (ValueError, RecursionError) as error:  # the value may be nested deeper than Python can parse
        entry.problem("value", f"not JSON: {error}")
        return {}
    return Section({"value": tags}, entry.path, entry.problems).texts_by_name("value") or {}
