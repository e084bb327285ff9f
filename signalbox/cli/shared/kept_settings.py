"""The settings that a stage keeps: a deployment that leaves a setting out keeps its value."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox import __version__
from signalbox.cli.doctor.settings import InvalidSettings, given_settings, read_settings
from signalbox.cli.shared.confirmation import confirm
from signalbox.cli.shared.stage import SETTINGS_OUTPUT, VERSION_OUTPUT, say
from signalbox.clients.deployment import capabilities_of
from signalbox.clients.stage_session import StageMissing, stack_outputs
from signalbox.local.files import require_settings
from signalbox.nearest import suggestion

if TYPE_CHECKING:
    import boto3

KEPT_CAPABILITIES = "kept_capabilities"
Reset = Annotated[
    list[str] | None,
    typer.Option("--reset", metavar="KEY", help="Take a setting of the stage back to its default; repeatable."),
]


@dataclass(frozen=True, slots=True)
class SettingsPlan:
    """The settings of a deployment of the form KEY=VALUE, and what they change on the stage, a line each."""

    context: Sequence[str]
    lines: Sequence[str]
    taken_away: Sequence[str] = ()
    """The capabilities that the deployment takes away; their data stays."""

    def confirm(self, *, yes: bool, as_json: bool = False) -> None:
        """Ask before capabilities are taken away."""
        if self.taken_away:
            names = ", ".join(self.taken_away)
            what = "functions, queues with their messages, and APIs are deleted; tables and bucket stay"
            what += "; no deny is in force" if "live" in self.taken_away else ""
            confirm(f"This takes away {names}: {what}. Continue?", yes=yes, as_json=as_json)

    def say(self) -> None:
        """Print the lines to standard error."""
        for line in self.lines:
            say(line)


def plan_of_stage(
    session: "Callable[[str | None], boto3.Session]",
    context: Sequence[str],
    *,
    reset: Collection[str],
    place: Sequence[str] = (),
) -> SettingsPlan:
    """Return the plan for the stage that the context names; `session` gets the region of the settings.

    A stack without outputs, as after a failed first deployment, is no stage yet. Raises `InvalidSettings`.
    """
    config = read_settings([*place, *context])
    try:
        outputs = stack_outputs(session(config.region), config.stage)
    except StageMissing:
        outputs = {}
    if SETTINGS_OUTPUT not in outputs:
        return new_stage(context, reset=reset)
    return plan(outputs, context, reset=reset, place=place)


def new_stage(context: Sequence[str], *, reset: Collection[str] = ()) -> SettingsPlan:
    """Return the plan for a stage that does not exist. Raises `InvalidSettings`."""
    require_settings()
    from stacks.settings.record import defaults

    _check_reset(reset, context, defaults())
    return SettingsPlan(context, ())


def plan(
    outputs: Mapping[str, str], context: Sequence[str], *, reset: Collection[str] = (), place: Sequence[str] = ()
) -> SettingsPlan:
    """Return the plan for a stage with these outputs; `place` are the settings of a stage to which none is given.

    Raises `InvalidSettings`.
    """
    require_settings()
    from stacks.settings.record import defaults, recorded

    record = {name: str(value) for name, value in json.loads(outputs[SETTINGS_OUTPUT]).items()}
    _check_reset(reset, context, defaults() | record)
    _check_record(sorted(record.keys() - defaults().keys() - {*reset}))
    before, standard = defaults() | record, defaults() | recorded(read_settings(place))
    settled = {*given_settings(context), *reset}
    kept = {name: before[name] for name in standard if before[name] != standard[name] and name not in settled}
    effective = [*(f"{name}={value}" for name, value in kept.items()), *context]
    try:
        config = read_settings([*place, *effective])
    except InvalidSettings as error:
        raise InvalidSettings(f"{error}{_hint(kept)}") from error
    had = capabilities_of(outputs)
    taken_away = [one for one in had if not config.has(one)]
    if taken_away:
        stored = [one for one in (*config.stored_parts, *taken_away) if not config.has(one)]
        effective = [*effective, f"{KEPT_CAPABILITIES}={','.join(stored)}"]
        config = read_settings([*place, *effective])
    lines = _lines(before, defaults() | recorded(config), kept=kept.keys() - {KEPT_CAPABILITIES})
    return SettingsPlan(effective, (*_version_lines(outputs), *lines), taken_away)


def _check_reset(reset: Iterable[str], context: Iterable[str], known: Collection[str]) -> None:
    given = {setting.partition("=")[0] for setting in context}
    problems = []
    for name in reset:
        if name in given:
            problems.append(f"--reset {name} contradicts --context {name}=…: give one of them")
        elif name not in known:
            near = suggestion(name, known) or ": see docs/settings.md"
            problems.append(f"{name!r} is not a setting that a stage keeps{near}")
    if problems:
        raise InvalidSettings("\n".join(problems))


def _check_record(unknown: Sequence[str]) -> None:
    """Refuse settings of a stage that a later or earlier version has deployed, unless they are reset."""
    if unknown:
        options = " ".join(f"--reset {name}" for name in unknown)
        names = ", ".join(unknown)
        raise InvalidSettings(f"this version does not know settings of the stage: {names}; `{options}` takes them back")


def _hint(kept: Iterable[str]) -> str:
    names = ", ".join(sorted(kept))
    return f"\nkept from the stage: {names}; `--reset KEY` takes one back to its default" if names else ""


def _version_lines(outputs: Mapping[str, str]) -> Iterator[str]:
    deployed = outputs.get(VERSION_OUTPUT, __version__)
    if deployed != __version__:
        yield f"version changed: {deployed} → {__version__}"


def _lines(before: Mapping[str, str], after: Mapping[str, str], *, kept: Collection[str]) -> Iterator[str]:
    for name in sorted(before):
        if name in kept:
            yield f"setting kept: {name} = {_shown(before[name])}"
        elif before[name] != after.get(name):
            yield f"setting changed: {name} = {_shown(before[name])} → {_shown(after.get(name, ''))}"


def _shown(value: str) -> str:
    return value or "not set"
