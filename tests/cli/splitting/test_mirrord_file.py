"""mirrord configurations with templates, as mirrord renders them (mirrord's configuration reference, «Templating»)."""

import json
import subprocess
from pathlib import Path

import pytest

from signalbox.cli.splitting.mirrord_file import read_mirrord_file
from signalbox.errors import RejectedError
from signalbox.splitting.model.session_config import parse_mirrord_file
from tests.unit.splitting.forwarding.languages import PlainLanguages


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    monkeypatch.setenv("WHO", "ann")
    monkeypatch.delenv("MIRRORD_KEY", raising=False)
    monkeypatch.delenv("MIRRORD_BRANCH_NAME", raising=False)
    monkeypatch.chdir(tmp_path)


def read(text: str, name: str = "mirrord.json") -> object:
    Path(name).write_text(text)
    return read_mirrord_file(Path(name))


def rendered(template: str, **fields: str) -> object:
    """Return a text of a JSON file after rendering; the template's quotes are as written."""
    rest = "".join(f', "{name}": {json.dumps(value)}' for name, value in fields.items())
    return read(f'{{"x": "{template}"{rest}}}')["x"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("^{{ key }}$", "^k-1$"),
        ("{{key}}{{ key }}", "k-1k-1"),
        ('{{ get_env(name="WHO") }}', "ann"),
        ("{{ get_env( name = 'WHO', default = `bob` ) }}", "ann"),
        ('{{ get_env(name="NOBODY", default="bob") }}', "bob"),
        ("{{ git_branch | default(value='shared') }}", "shared"),
        ('{{ unknown | default(value="") }}', ""),
        ("a{# a comment #}b", "ab"),
        ("a{b}{c}} }} {1,2}", "a{b}{c}} }} {1,2}"),
    ],
)
def test_an_expression_is_rendered(template, expected):
    assert rendered(template, key="k-1") == expected


@pytest.mark.parametrize(
    "template",
    [
        "{{ key | upper }}",
        "{{- key -}}",
        "{{ 'a' ~ key }}",
        "{% if key %}a{% endif %}",
        "{% raw %}a{% endraw %}",
        '{{ get_env(default="a", name="WHO") }}',
        "{{ now() }}",
        "{{ key",
        "{# no end",
    ],
)
def test_a_template_that_is_not_rendered_is_refused(template):
    with pytest.raises(
        RejectedError, match=r"is not rendered: only \{\{ key \}\}, \{\{ git_branch \}\}, get_env and default"
    ):
        rendered(template, key="k-1")


@pytest.mark.parametrize("template", ["{{ unknown }}", "{{ git_branch }}", '{{ get_env(name="NOBODY") }}'])
def test_a_variable_that_is_not_set_is_refused(template):
    with pytest.raises(RejectedError, match="is not set, and there is no default"):
        rendered(template)


def test_the_key_is_that_of_the_environment_or_of_the_file_where_it_may_name_the_branch(monkeypatch):
    monkeypatch.setenv("MIRRORD_BRANCH_NAME", "fix")

    of_file = rendered("{{ key }}", key="my-{{ git_branch }}")
    monkeypatch.setenv("MIRRORD_KEY", "mine")

    assert (of_file, rendered("{{ key }}", key="theirs")) == ("my-fix", "mine")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "s3cret") for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "apiKey", "MYSQL_PWD", "DB_PASSWORD")),
        ("DATABASE_URL", "postgres://app:s3cret@db/x"),
    ],
)
def test_a_variable_that_looks_like_a_secret_is_in_no_filter(name, value, monkeypatch):
    monkeypatch.setenv(name, value)

    text = rendered(f'{{{{ get_env(name="{name}", default="none") }}}}')

    assert "s3cret" not in text
    feature = {"split_queues": {"q": {"queue_type": "SQS", "message_filter": {"a": text}}}}
    with pytest.raises(RejectedError, match="no variable of the environment that looks like a secret"):
        parse_mirrord_file({"feature": feature}, PlainLanguages())
    monkeypatch.delenv(name)
    assert rendered(f'{{{{ get_env(name="{name}", default="none") }}}}') == "none"


@pytest.mark.parametrize("name", ["MIRRORD_KEY", "KEYBOARD", "PWD", "AUTHOR", "PASSENGER", "MONKEY"])
def test_a_variable_that_only_resembles_a_secret_is_rendered(name, monkeypatch):
    monkeypatch.setenv(name, "ann")

    assert rendered(f'{{{{ get_env(name="{name}") }}}}') == "ann"


@pytest.mark.parametrize("fields", ["", ', "key": 7', ', "key": "{{ get_env(name="WHO") }}"'])
def test_a_file_without_a_key_keeps_the_template_which_filters_must_not_have(fields):
    document = read(f'{{"x": "{{{{key}}}}"{fields}}}')

    assert document["x"] == "{{ key }}"
    feature = {"split_queues": {"q": {"queue_type": "SQS", "jq_filter": document["x"]}}}
    with pytest.raises(RejectedError, match="has a template that is not rendered"):
        parse_mirrord_file({"feature": feature}, PlainLanguages())


def test_the_branch_is_that_of_the_working_directory():
    subprocess.run(["git", "init", "-q", "-b", "topic"], check=True)  # noqa: S607 - the machine's git

    assert rendered("{{ git_branch }}") == "topic"


def test_a_machine_without_git_has_no_branch(monkeypatch):
    monkeypatch.setenv("PATH", "")

    assert rendered("{{ git_branch | default(value='main') }}") == "main"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mirrord.yaml", "key: ann\nfeature: {split_queues: {'*': {jq_filter: '.a == \"{{ key }}\"'}}}\n"),
        ("mirrord.yml", "key: ann\nfeature: {split_queues: {'*': {jq_filter: '.a == \"{{ key }}\"'}}}\n"),
        ("mirrord.toml", 'key = "ann"\n[feature.split_queues."*"]\njq_filter = \'.a == "{{ key }}"\'\n'),
    ],
)
def test_yaml_and_toml_are_rendered_and_read_too(name, text):
    expected = {"key": "ann", "feature": {"split_queues": {"*": {"jq_filter": '.a == "ann"'}}}}

    assert read(text, name) == expected


@pytest.mark.parametrize(
    ("name", "language"), [("mirrord.json", "JSON"), ("mirrord.toml", "TOML"), ("mirrord.yaml", "YAML")]
)
def test_a_file_in_another_language_is_refused(name, language):
    with pytest.raises(RejectedError, match=f"'{name}' is not {language}"):
        read("{a", name)
