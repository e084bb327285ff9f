"""mirrord's configuration in JSON, YAML or TOML: templates are rendered as mirrord does, then it is parsed."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from signalbox.cli.shared.files import read_text
from signalbox.documents import shown
from signalbox.errors import RejectedError
from signalbox.splitting.model.session_config import split_queues_of

# mirrord generates a key that is missing. A session's filters must not differ at each start, and elsewhere in the file
# the key is not used: `read_split_queues` refuses it.
NO_KEY = "{{ key }}"
# All users of splitting see filters, and others may have written the file. No other variable is in them unasked.
HARMLESS = re.compile(
    "MIRRORD_(KEY|BRANCH_NAME)|USER(NAME)?|LOGNAME|HOST(NAME)?|COMPUTERNAME|GITLAB_USER_LOGIN"
    "|GITHUB_(ACTOR|BASE_REF|HEAD_REF|JOB|REF_NAME|REPOSITORY|RUN_ATTEMPT|RUN_ID|RUN_NUMBER|SHA|WORKFLOW)"
    "|CI_(COMMIT_(BRANCH|REF_NAME|REF_SLUG|SHA|SHORT_SHA)|ENVIRONMENT_(NAME|SLUG)|JOB_(ID|NAME)|MERGE_REQUEST_IID)"
    "|CI_(PIPELINE_(ID|IID)|PROJECT_NAME)|BUILD_(ID|NUMBER|TAG)|GIT_(BRANCH|COMMIT)|(BRANCH|JOB|NODE)_NAME|CHANGE_ID"
)
WITHHELD = "736405182{:06}"  # instead of a value; JSON, YAML and TOML take a number with and without quotes
KEY_VARIABLE, BRANCH_VARIABLE = "MIRRORD_KEY", "MIRRORD_BRANCH_NAME"
# Of Tera, mirrord's template engine: expressions, comments, and anything else that begins like one.
TAG = re.compile(r"\{\{(?P<expression>.*?)\}\}|(?P<comment>\{#.*?#\})|\{[{%#]", re.DOTALL)
TEXT = """"[^"]*"|'[^']*'|`[^`]*`"""
EXPRESSION = re.compile(
    rf"(?:(?P<variable>\w+)|get_env\(\s*name\s*=\s*(?P<env>{TEXT})\s*(?:,\s*default\s*=\s*(?P<otherwise>{TEXT})\s*)?\))"
    rf"(?:\s*\|\s*default\(\s*value\s*=\s*(?P<default>{TEXT})\s*\))?"
)

Variables = Callable[[str], str | None]


def read_mirrord_file(path: Path, permitted: Iterable[str] = ()) -> object:
    """Return the document in a mirrord configuration. Raises `RejectedError`, also for what is not rendered.

    Filters and the target may have variables of the environment that are harmless or in `permitted`.
    """
    environment = _Environment(frozenset(permitted))
    text = read_text(path)
    document = _parsed(_rendered(text, lambda name: _value(name, text, path, environment), environment), path)
    environment.check(document)
    return document


@dataclass(frozen=True, slots=True)
class _Environment:
    """The environment as templates see it; `withheld` has the variables whose values they do not get."""

    permitted: frozenset[str]
    withheld: list[str] = field(default_factory=list)

    def value(self, name: str) -> str | None:
        """Return the value of a variable, a mark instead of one that is not permitted, or None."""
        found = os.environ.get(name)
        if found is None or HARMLESS.fullmatch(name) or name in self.permitted:
            return found
        if name not in self.withheld:
            self.withheld.append(name)
        return WITHHELD.format(self.withheld.index(name))

    def check(self, document: object) -> None:
        """Raise `RejectedError` if a document's filters or target have a withheld variable."""
        target = document.get("target") if isinstance(document, dict) else None
        sent = json.dumps([split_queues_of(document), target], default=str)
        names = [name for number, name in enumerate(self.withheld) if WITHHELD.format(number) in sent]
        if names:
            options = " ".join(f"--env {name}" for name in names)
            raise RejectedError(
                f"the filters or the target have the variables {', '.join(names)} of the environment, and all users of "
                f"splitting see filters: if these contain no secret, add {options}"
            )


def _value(name: str, text: str, path: Path, environment: _Environment) -> str | None:
    """Return the value of a variable of mirrord, or None."""
    return _key(text, path, environment) if name == "key" else _branch(name)


def _key(text: str, path: Path, environment: _Environment) -> str:
    """Return the session key of the environment or, without one, of the unrendered file."""
    given = os.environ.get(KEY_VARIABLE)
    if given is not None:
        return given
    try:
        document = _parsed(text, path)
    except RejectedError:
        document = None  # as in mirrord, such a file has no key
    key = document.get("key") if isinstance(document, dict) else None
    return _rendered(key, _branch, environment) if isinstance(key, str) else NO_KEY


def _branch(name: str) -> str | None:
    if name != "git_branch":
        return None
    if given := os.environ.get(BRANCH_VARIABLE):
        return given
    try:
        command = ["git", "branch", "--show-current"]
        found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the user's git
    except OSError:
        return None
    return found.stdout.strip() or None


def _rendered(text: str, variables: Variables, environment: _Environment) -> str:
    def render(tag: re.Match[str]) -> str:
        if tag["comment"] is not None:
            return ""
        found = EXPRESSION.fullmatch((tag["expression"] or "").strip())
        if found is None:
            raise RejectedError(
                f"{shown(tag[0])} is not rendered: only {{{{ key }}}}, {{{{ git_branch }}}}, get_env and default are; "
                "replace it, or render the file with mirrord's engine first"
            )
        return _evaluated(found, variables, environment)

    return TAG.sub(render, text)


def _evaluated(expression: re.Match[str], variables: Variables, environment: _Environment) -> str:
    if expression["env"] is not None:
        name, default = expression["env"][1:-1], expression["otherwise"]
        value = environment.value(name)
    else:
        name, default = expression["variable"], expression["default"]
        value = variables(name)
    if value is None and default is None:
        raise RejectedError(f"template {shown(expression[0])}: {name!r} is not set, and there is no default")
    return value if value is not None else str(default)[1:-1]


def _parsed(text: str, path: Path) -> object:
    """Return the document in a text; as in mirrord, the file's suffix says its language."""
    if path.suffix in (".yaml", ".yml"):
        from signalbox.cli.splitting.registry import parse_documents

        documents = parse_documents(text, str(path))
        return documents[0] if len(documents) == 1 else documents
    try:
        if path.suffix == ".toml":
            import tomllib

            return json.loads(json.dumps(tomllib.loads(text), default=str))
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        language = "TOML" if path.suffix == ".toml" else "JSON"
        raise RejectedError(f"{str(path)!r} is not {language}: {error}") from error
