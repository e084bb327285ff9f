"""The record of a stage's settings: those that differ from their defaults, as text that the context takes again."""

import json

from stacks.settings.clusters import KubernetesClusters
from stacks.settings.config import Config, settings

# They name the stage: a deployment without them is one of another stage.
OF_THE_PLACE = ("stage", "region", "local")


def recorded(config: Config) -> dict[str, str]:
    """Return the settings that differ from their defaults, by name; without those that name the stage."""
    values = {one.name: (getattr(config, one.name), one.default) for one in settings() if one.name not in OF_THE_PLACE}
    return {name: as_text(value) for name, (value, default) in values.items() if value != default}


def defaults() -> dict[str, str]:
    """Return the defaults of the settings that a record may contain; that of an optional setting is empty."""
    return {one.name: as_text(one.default) for one in settings() if one.name not in OF_THE_PLACE}


def as_text(value: object) -> str:
    """Return a setting's value as the context takes it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, KubernetesClusters):
        return json.dumps({name: dict(cluster) for name, cluster in value.clusters}, separators=(",", ":"))
    return str(value)
