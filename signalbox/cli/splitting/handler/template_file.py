"""The text of a template: JSON, or YAML with the short forms of CloudFormation's functions."""

import json
from contextlib import suppress
from typing import Any

import yaml

from signalbox.clients.splitting.handler.template import InvalidTemplate

WITHOUT_PREFIX = frozenset({"Ref", "Condition"})


class _Loader(yaml.SafeLoader):
    """YAML in which `!Ref x` is `{"Ref": x}` and `!Sub x` is `{"Fn::Sub": x}`."""


def _function(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in WITHOUT_PREFIX else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    return {name: loader.construct_mapping(node, deep=True)}  # type: ignore[arg-type]


_Loader.add_multi_constructor("!", _function)


def parse_template(text: str, name: str) -> object:
    """Return a template's document. Raises `InvalidTemplate`."""
    with suppress(ValueError):  # CDK's are JSON, which is read much faster
        return json.loads(text)
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidTemplate(f"{name!r} is not YAML: {error}") from error
