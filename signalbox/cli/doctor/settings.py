"""The deployment settings of `deploy` and `doctor`, read as the CDK app reads them."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from signalbox.errors import RejectedError
from signalbox.local.files import CHECKOUT, require_settings

if TYPE_CHECKING:
    from stacks.settings.config import Config


class InvalidSettings(RejectedError):
    """Raised when settings given to a command, or in `cdk.json`, are unknown, not allowed or contradict each other."""


def read_settings(given: Iterable[str]) -> "Config":
    """Return the configuration of `cdk.json` and of settings of the form KEY=VALUE. Raises `InvalidSettings`."""
    require_settings()
    from stacks.settings.context import InvalidConfig, read_config

    try:
        return read_config(given_settings(given))
    except InvalidConfig as error:
        raise InvalidSettings("\n".join(error.problems)) from error


def given_settings(given: Iterable[str]) -> dict[str, object]:
    """Return the context of `cdk.json` and of settings of the form KEY=VALUE. Raises `InvalidSettings`."""
    context: dict[str, object] = json.loads((CHECKOUT / "cdk.json").read_text()).get("context", {})
    for setting in given:
        key, separator, value = setting.partition("=")
        if not separator:
            raise InvalidSettings(f"expected a setting as KEY=VALUE, not {setting!r}")
        context[key] = value
    return context
