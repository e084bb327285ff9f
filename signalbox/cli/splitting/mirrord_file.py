"""mirrord's configuration in JSON, YAML or TOML: templates are rendered as mirrord does, then it is parsed."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from signalbox.cli.shared.files import read_text
from signalbox.documents import shown
from signalbox.errors import RejectedError

# mirrord generates a key that is missing. A session's filters must not differ at each start, and elsewhere in the file
# the key is not used: `read_split_queues` refuses it.
NO_KEY = "{{ key }}"
# All users of splitting see filters, and others may have written the file. Nothing else in it is used by the stage.
WITHHELD = "{{ get_env }}"
SECRET_NAME = re.compile(
    "secret|token|passw|passphrase|credential|private|cookie|apikey|_pwd|(^|_)(pass|auth|pat|key)(?![a-z])",
    re.IGNORECASE,
)
SECRET_VALUE = re.compile("://[^/@\\s]*:[^/@\\s]+@")  # a URL with a password
KEY_VARIABLE, BRANCH_VARIABLE = "MIRRORD_KEY", "MIRRORD_BRANCH_NAME"
# Of Tera, mirrord's template engine: expressions, comments, and anything else that begins like one.
TAG = re.compile(r"\{\{(?P<expression>.*?)\}\}|(?P<comment>\{#.*?#\})|\{[{%#]", re.DOTALL)
TEXT = """"[^"]*"|'[^']*'|`[^`]*`"""
EXPRESSION = re.compile(
    rf"(?:(?P<variable>\w+)|get_env\(\s*name\s*=\s*(?P<env>{TEXT})\s*(?:,\s*default\s*=\s*(?P<otherwise>{TEXT})\s*)?\))"
    rf"(?:\s*\|\s*default\(\s*value\s*=\s*(?P<default>{TEXT})\s*\))?"
)

Variables = Callable[[str], str | None]


def read_mirrord_file(path: Path) -> object:
    """Return the document in a mirrord configuration. Raises `RejectedError`, also for what is not rendered."""
    text = read_text(path)
    return _parsed(_rendered(text, lambda name: _value(name, text, path)), path)


def _value(name: str, text: str, path: Path) -> str | None:
    """Return the value of a variable of mirrord, or None."""
    return _key(text, path) if name == "key" else _branch(name)


def _key(text: str, path: Path) -> str:
    """Return the session key of the environment or, without one, of the unrendered file."""
    given = os.environ.get(KEY_VARIABLE)
    if given is not None:
        return given
    try:
        document = _parsed(text, path)
    except RejectedError:
        document = None  # as in mirrord, such a file has no key
    key = document.get("key") if isinstance(document, dict) else None
    return _rendered(key, _branch) if isinstance(key, str) else NO_KEY


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


def _rendered(text: str, variables: Variables) -> str:
    def render(tag: re.Match[str]) -> str:
        if tag["comment"] is not None:
            return ""
        found = EXPRESSION.fullmatch((tag["expression"] or "").strip())
        if found is None:
            raise RejectedError(
                f"{shown(tag[0])} is not rendered: only {{{{ key }}}}, {{{{ git_branch }}}}, get_env and default are; "
                "replace it, or render the file with mirrord's engine first"
            )
        return _evaluated(found, variables)

    return TAG.sub(render, text)


def _evaluated(expression: re.Match[str], variables: Variables) -> str:
    if expression["env"] is not None:
        name, default = expression["env"][1:-1], expression["otherwise"]
        value = _of_environment(name)
    else:
        name, default = expression["variable"], expression["default"]
        value = variables(name)
    if value is None and default is None:
        raise RejectedError(f"template {shown(expression[0])}: {name!r} is not set, and there is no default")
    return value if value is not None else str(default)[1:-1]


def _of_environment(name: str) -> str | None:
    """Return the value of a variable, `WITHHELD` instead of what looks like a secret, or None."""
    value = os.environ.get(name)
    is_secret = name != KEY_VARIABLE and (SECRET_NAME.search(name) or SECRET_VALUE.search(value or ""))
    return WITHHELD if value is not None and is_secret else value


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
