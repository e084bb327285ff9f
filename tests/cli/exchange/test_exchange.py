"""`signalbox exchange match`, offline."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from signalbox.cli.main import app
from signalbox.errors import RejectedError

BINDINGS = [
    {"queue": "all", "pattern": "#"},
    {"queue": "alerts", "pattern": "v03.*.alerts.#"},
    {"queue": "alerts", "pattern": "#.alerts"},
    {"queue": "root", "pattern": "*"},
]


def match(folder: Path, *options: str, keys: str | bytes, bindings: object = BINDINGS) -> Result:
    file = folder / "bindings.json"
    file.write_text(json.dumps(bindings))
    command = ["exchange", "match", "--bindings", str(file), *options]
    return CliRunner().invoke(app, command, input=keys, catch_exceptions=False)


def test_each_key_is_one_line_of_json(tmp_path):
    result = match(tmp_path, "--json", keys="v03.weather.alerts\n\nv03\nv03..alerts.x\n")

    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"key": "v03.weather.alerts", "queues": ["alerts", "all"]},
        {"key": "", "queues": ["all"]},
        {"key": "v03", "queues": ["all", "root"]},
        {"key": "v03..alerts.x", "queues": ["alerts", "all"]},
    ]


def test_for_people_there_is_a_table(tmp_path):
    lines = match(tmp_path, keys="v03\na.b\n", bindings=BINDINGS[3:]).stdout.splitlines()

    assert ["v03", "root"] in [line.split() for line in lines]
    assert ["a.b", "none:", "dropped"] in [line.split() for line in lines]


def test_without_keys_nothing_is_printed(tmp_path):
    assert match(tmp_path, "--json", keys="").stdout == ""


def test_a_pattern_that_may_not_be_bound_is_named(tmp_path):
    bindings = [*BINDINGS, {"queue": "q", "pattern": "#.a.#.b.#"}, {"queue": "q", "pattern": "b" * 256}]

    with pytest.raises(RejectedError) as refused:
        match(tmp_path, keys="a\n", bindings=bindings)

    first, second = str(refused.value).splitlines()
    assert first == (
        "bindings[4].pattern: pattern '#.a.#.b.#' uses '#' 3 times; at most 2 are allowed in a new binding"
    )
    assert second.startswith(f"bindings[5].pattern: pattern '{'b' * 256}' has 256 bytes of UTF-8")


def test_a_key_that_cannot_be_one_is_named_with_its_line(tmp_path):
    with pytest.raises(RejectedError, match=r"^line 2: routing key 'bbb"):
        match(tmp_path, "--json", keys="a\n" + "b" * 256)


def test_a_file_that_is_no_json_is_refused(tmp_path):
    (tmp_path / "bindings.json").write_text("a.#")

    with pytest.raises(RejectedError, match="is not JSON"):
        CliRunner().invoke(
            app, ["exchange", "match", "--bindings", str(tmp_path / "bindings.json")], catch_exceptions=False
        )


def test_bindings_do_not_come_from_standard_input():
    with pytest.raises(RejectedError, match="standard input is for the routing keys"):
        CliRunner().invoke(app, ["exchange", "match", "--bindings", "-"], input="[]", catch_exceptions=False)


def test_a_reader_that_has_seen_enough_ends_the_command_without_a_word(tmp_path):
    (tmp_path / "bindings.json").write_text(json.dumps(BINDINGS))
    (tmp_path / "keys").write_text("a.b.c\n" * 20_000)  # more than a pipe holds
    command = [sys.executable, "-c", "from signalbox.cli.main import main; main()", "exchange", "match", "--json"]
    command += ["--bindings", str(tmp_path / "bindings.json")]

    with (tmp_path / "keys").open() as keys:
        program = subprocess.Popen(command, stdin=keys, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.readline()
        program.stdout.close()
        said = program.stderr.read()
        program.stderr.close()

    assert program.wait() == 1
    assert said == b""
