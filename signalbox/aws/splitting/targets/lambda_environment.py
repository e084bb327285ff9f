"""The variables of Lambda targets: changed in the function, and published as a version for an alias."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signalbox.aws.shared.errors import translate_write_errors
from signalbox.aws.splitting.targets.original_queues import TARGETS_SETTING, deployed_names
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.splitting.consumers.variables import Variables
from signalbox.splitting.model.observed_state import TargetState, combined_state
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import Annotations

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_lambda.type_defs import AliasConfigurationResponseTypeDef as Alias

VARIABLES_ANNOTATION, VERSION_ANNOTATION = "variables", "version"
LATEST = "$LATEST"
# A version must equal the function in all fields of GetFunctionConfiguration but these, so that a new version differs
# only in its variables. Lambda writes all others of these itself, but for the description.
DIFFERENT = frozenset(
    [
        "Environment",
        "Description",
        "FunctionArn",
        "Version",
        "RevisionId",
        "ConfigSha256",
        "LastModified",
        "State",
        "StateReason",
        "StateReasonCode",
        "LastUpdateStatus",
        "LastUpdateStatusReason",
        "LastUpdateStatusReasonCode",
        "SnapStart",
        "RuntimeVersionConfig",
        "ResponseMetadata",
    ]
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration of a function or one of its versions."""

    document: Mapping[str, Any]

    @property
    def variables(self) -> Mapping[str, str]:
        """Return the variables. Raises `EffectRefused` if Lambda could not decrypt them."""
        environment = self.document.get("Environment", {})
        if error := environment.get("Error"):
            raise EffectRefused(
                f"variables of function {self.document['FunctionArn']!r} cannot be read: "
                f"{error.get('ErrorCode')}: {error.get('Message')}"
            )
        variables: Mapping[str, str] = environment.get("Variables", {})
        return variables

    @property
    def is_changing(self) -> bool:
        """Return whether an update is still in progress."""
        return self.document.get("LastUpdateStatus") == "InProgress" or self.document.get("State") == "Pending"

    @property
    def failure(self) -> str | None:
        """Return the reason for which the last update failed, or None."""
        is_failed = "Failed" in (self.document.get("LastUpdateStatus"), self.document.get("State"))
        reasons = (self.document.get(name) for name in ("LastUpdateStatusReason", "StateReason"))
        return next(filter(None, reasons), "no reason given") if is_failed else None


@dataclass(frozen=True, slots=True)
class LambdaEnvironment:
    """The variables of functions, replaced as a whole and only if the function was not changed since it was read."""

    functions: "LambdaClient"
    annotations: Annotations

    def find(self, target: Target) -> Configuration | None:
        """Return the target's configuration, or None if the function or alias does not exist."""
        name, _, qualifier = target.name.partition(":")
        try:
            with translate_write_errors(f"function {target.name!r}", setting=TARGETS_SETTING):
                return self._read(name, qualifier or LATEST)
        except EffectRefused as error:
            if isinstance(error.__cause__, self.functions.exceptions.ResourceNotFoundException):
                return None
            raise

    def configuration(self, target: Target) -> Configuration:
        """Return the target's configuration. Raises `EffectRefused` if the target does not exist."""
        found = self.find(target)
        if found is None:
            raise EffectRefused(f"there is no {target}")
        return found

    def before(self, target: Target) -> Mapping[str, str]:
        """Return the variables as they were before the first switch."""
        overlaid = {**self.configuration(target).variables, **self._noted(target)}
        return {name: value for name, value in overlaid.items() if value is not None}

    def state(self, split: Split, variables: Variables, found: Configuration) -> TargetState:
        """Return which queue names the target runs with."""
        names = deployed_names(split)
        latest = self._latest(split.target)
        if found.is_changing or latest.is_changing:
            return TargetState.CHANGING
        state = variables.state(found.variables, names)
        if found.failure and state is TargetState.TEMPORARY:
            return TargetState.MIXED
        if state is TargetState.TEMPORARY or not _alias_name(split.target):
            return state
        # An alias on its old version while the function has other names: an interrupted switch.
        return combined_state((state, variables.state(latest.variables, names)))

    def switch(self, split: Split, variables: Variables) -> None:
        """Give the target the names of the temporary queues."""
        names, target = deployed_names(split), split.target
        alias, latest = self._alias(target), self._latest(target)
        if alias is not None:
            found = self.configuration(target)
            if variables.state(found.variables, names) is TargetState.TEMPORARY:
                return
            before = variables.restored(latest.variables, self._noted(target), names)
            _check_alias(target, alias, found, is_latest=_is_alike(found, latest) and before == found.variables)
        after = variables.switched(latest.variables, names)
        if variables.state(after, names) is not TargetState.TEMPORARY:
            raise EffectRefused(f"the variables of {target} name other queues than at the start of the split")
        if after != latest.variables or latest.failure:
            self._note(target, alias, variables.noted(latest.variables, names))
            self._update(target, latest, after)
        elif alias is not None:
            self._publish(target, alias, latest)

    def switch_back(self, split: Split, variables: Variables) -> None:
        """Restore the target's values."""
        names, target = deployed_names(split), split.target
        alias, latest, noted = self._alias(target), self._latest(target), self._noted(target)
        restored = variables.restored(latest.variables, noted, names)
        if alias is not None:
            found = self.configuration(target)
            wanted = variables.restored(found.variables, noted, names)
            if wanted != found.variables and not self._put_back(target, alias, found, wanted):
                self._replace(target, alias, found, latest if restored == latest.variables else None)
        if restored != latest.variables:
            self._update(target, latest, restored)

    def _put_back(self, target: Target, alias: "Alias", found: Configuration, wanted: Mapping[str, str]) -> bool:
        """Point the alias at its old version if the current one differs from it only by temporary names."""
        version = self.annotations.of(target).get(VERSION_ANNOTATION)
        if version is None:
            return False
        with translate_write_errors(f"version {version} of function {target.name!r}"):
            before = self._read(_function_name(target), version)
        if not _is_alike(before, found) or before.variables != wanted:
            return False
        self._point(target, alias, version)
        return True

    def _replace(self, target: Target, alias: "Alias", found: Configuration, latest: Configuration | None) -> None:
        """Publish a release made during the split with its original names, after the function has them."""
        if latest is None:
            return
        if not _is_alike(latest, found):
            raise EffectRefused(
                f"{target} and its function differ; publish the intended version, and the alias is switched back"
            )
        self._publish(target, alias, latest)

    def _publish(self, target: Target, alias: "Alias", latest: Configuration) -> None:
        """Publish the function; this creates no version if the latest one is identical."""
        if latest.failure:
            raise EffectFailed(f"{target} could not be changed: {latest.failure}")
        with translate_write_errors(f"function {target.name!r}"):
            version = self.functions.publish_version(
                FunctionName=_function_name(target),
                CodeSha256=latest.document["CodeSha256"],
                RevisionId=latest.document["RevisionId"],
            )
        if not Configuration(version).is_changing:
            self._point(target, alias, version["Version"])

    def _point(self, target: Target, alias: "Alias", version: str) -> None:
        with translate_write_errors(f"alias {target.name!r}"):
            self.functions.update_alias(
                FunctionName=_function_name(target),
                Name=alias["Name"],
                FunctionVersion=version,
                RevisionId=alias["RevisionId"],
            )

    def _update(self, target: Target, latest: Configuration, variables: Mapping[str, str]) -> None:
        with translate_write_errors(f"function {target.name!r}"):
            self.functions.update_function_configuration(
                FunctionName=_function_name(target),
                Environment={"Variables": variables},
                RevisionId=latest.document["RevisionId"],
            )

    def _note(self, target: Target, alias: "Alias | None", before: Mapping[str, str | None]) -> None:
        # The version first: saved variables imply that both were saved.
        if alias is not None:
            self.annotations.put(target, VERSION_ANNOTATION, alias["FunctionVersion"])
        self.annotations.put(target, VARIABLES_ANNOTATION, json.dumps(before))

    def _noted(self, target: Target) -> dict[str, str | None]:
        noted: dict[str, str | None] = json.loads(self.annotations.of(target).get(VARIABLES_ANNOTATION, "{}"))
        return noted

    def _latest(self, target: Target) -> Configuration:
        with translate_write_errors(f"function {target.name!r}"):
            return self._read(_function_name(target), LATEST)

    def _alias(self, target: Target) -> "Alias | None":
        """Return the target's alias, or None for a function. Raises `EffectRefused` for a version."""
        name = _alias_name(target)
        if name is None:
            return None
        if name.isdecimal():
            raise EffectRefused(f"{target} is a version, which cannot be changed; name an alias or the function")
        with translate_write_errors(f"alias {target.name!r}"):
            alias = self.functions.get_alias(FunctionName=_function_name(target), Name=name)
        return None if alias["FunctionVersion"] == LATEST else alias

    def _read(self, name: str, qualifier: str) -> Configuration:
        if qualifier == LATEST:
            return Configuration(self.functions.get_function_configuration(FunctionName=name))
        return Configuration(self.functions.get_function_configuration(FunctionName=name, Qualifier=qualifier))


def _function_name(target: Target) -> str:
    return target.name.partition(":")[0]


def _alias_name(target: Target) -> str | None:
    return target.name.partition(":")[2] or None


def _is_alike(one: Configuration, other: Configuration) -> bool:
    first, second = (
        {name: value for name, value in each.document.items() if value and name not in DIFFERENT}
        for each in (one, other)
    )
    return first == second


def _check_alias(target: Target, alias: "Alias", found: Configuration, *, is_latest: bool) -> None:
    """Raise `EffectRefused` if a switch would change more than variables."""
    if alias.get("RoutingConfig", {}).get("AdditionalVersionWeights"):
        raise EffectRefused(f"{target} routes its calls to several versions; point it at one version")
    if not is_latest:
        raise EffectRefused(
            f"{target} runs version {found.document['Version']}, which differs from the latest function; publish the "
            "function and point the alias at it: a switch would otherwise release unpublished changes"
        )
