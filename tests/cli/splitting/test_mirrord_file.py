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
    monkeypatch.setenv("USER", "ann")
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
        ('{{ get_env(name="USER") }}', "ann"),
        ("{{ get_env( name = 'USER', default = `bob` ) }}", "ann"),
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
        '{{ get_env(default="a", name="USER") }}',
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


FILTERS = '{"feature": {"split_queues": {"q": {"queue_type": "SQS", "message_filter": {"a": "FILTER"}}}}}'


@pytest.mark.parametrize(
    "name", ["AWS_SECRET_ACCESS_KEY", "SSHPASS", "API_KEYS", "DATABASE_DSN", "SENTRY_DSN", "DB_CONN", "COLOUR"]
)
def test_a_variable_is_in_no_filter_and_no_target_unless_it_is_named(name, monkeypatch):
    monkeypatch.setenv(name, "s3cret")
    template = f"{{{{ get_env(name='{name}', default='none') }}}}"
    file = FILTERS.replace("FILTER", f"^{template}$")

    with pytest.raises(RejectedError, match=f"variables {name} of the environment.*add --env {name}$") as refused:
        read(file)
    with pytest.raises(RejectedError, match=f"add --env {name}$"):
        read(f'{{"target": "lambda/{template}"}}')
    assert "s3cret" not in str(refused.value)
    assert "s3cret" in json.dumps(read_mirrord_file(Path("mirrord.json"), [name]))
    monkeypatch.delenv(name)
    assert "^none$" in json.dumps(read(file))


@pytest.mark.parametrize("file", ["mirrord.json", "mirrord.yaml", "mirrord.toml"])
def test_variables_elsewhere_in_a_file_need_no_name_and_are_not_rendered(file, monkeypatch):
    monkeypatch.setenv("TTL", "30")
    monkeypatch.setenv("IMAGE", "s3cret")
    template = "{{ get_env(name='TTL') }}, {{ get_env(name='IMAGE') }}"
    text = f"agent = [{template}]" if file.endswith("toml") else f'{{"agent": [{template}, "{template}"]}}'

    document = read(text, file)

    assert "s3cret" not in json.dumps(document)
    assert all(isinstance(one, int) for one in document["agent"][:2])


@pytest.mark.parametrize("name", ["MIRRORD_KEY", "MIRRORD_BRANCH_NAME", "USER", "HOSTNAME", "GITHUB_HEAD_REF"])
def test_a_variable_that_never_has_a_secret_is_in_filters(name, monkeypatch):
    monkeypatch.setenv(name, "ann")

    assert '"a": "ann"' in json.dumps(read(FILTERS.replace("FILTER", f"{{{{ get_env(name='{name}') }}}}")))


@pytest.mark.parametrize("fields", ["", ', "key": 7', ', "key": "{{ get_env(name="USER") }}"'])
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
