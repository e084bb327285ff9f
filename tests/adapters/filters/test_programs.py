"""jq programs of users: jq's own semantics, and the sandbox."""

import os
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from signalbox.filters.programs import MAXIMUM_ANSWER_BYTES, ProgramRunner, ProgramsUnavailable
from signalbox.splitting.forwarding.filters import FilterTooSlow, InvalidExpression, ProgramFailed


@pytest.fixture(scope="module")
def runner() -> Iterator[ProgramRunner]:
    runner = ProgramRunner(timedelta(seconds=20))
    yield runner
    runner.close()


@pytest.fixture
def hasty() -> Iterator[ProgramRunner]:
    runner = ProgramRunner(timedelta(seconds=0.5))
    yield runner
    runner.close()


@pytest.mark.parametrize(
    ("program", "document", "outputs"),
    [
        pytest.param(".Body | fromjson | .important == true", {"Body": '{"important": true}'}, [True], id="body"),
        pytest.param(
            '.MessageAttributes.client.StringValue | test("^a$")',
            {"MessageAttributes": {"client": {"StringValue": "a"}}},
            [True],
            id="attribute",
        ),
        pytest.param(".[]", {"a": 1, "b": "é"}, [1, "é"], id="several outputs"),
        pytest.param("empty", {}, [], id="no output"),
        pytest.param(".a", {"a": "x\ny"}, ["x\ny"], id="line ends"),
        pytest.param(".a | length", {"a": "x" * 1_000_000}, [1_000_000], id="as large as a message"),
    ],
)
def test_programs_have_jqs_outputs(runner, program, document, outputs):
    assert runner.compile(program).outputs(document) == outputs


@pytest.mark.parametrize(
    "program", [".Body | fromjson", 'true, error("no")', ".a.b.c", "input"], ids=["parse", "late", "index", "input"]
)
def test_a_run_time_error_raises(runner, program):
    with pytest.raises(ProgramFailed):
        runner.compile(program).outputs({"Body": "not json", "a": "text"})


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("", "Top-level program not given"),
        ("snow", "snow/0 is not defined"),
        ("idk | whatever", "idk/0 is not defined at <top-level>, line 1, column 1; whatever/0 is not defined"),
        (".[", "syntax error"),
        ("x" * 10_001, "10001 characters are too many"),
    ],
    ids=["empty", "unknown", "both", "syntax", "long"],
)
def test_a_compile_error_has_jqs_message_in_one_line(runner, program, reason):
    with pytest.raises(InvalidExpression) as refusal:
        runner.compile(program)

    assert reason in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("program", ["env", "$ENV"])
def test_a_program_has_no_environment(runner, program, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")

    assert runner.compile(program).outputs({}) == [{}]


def test_the_process_does_not_inherit_secrets(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/lib")
    runner = ProgramRunner()
    runner.compile("true")

    inherited = Path(f"/proc/{runner._process.pid}/environ")
    seen = inherited.read_bytes() if inherited.exists() else b""
    runner.close()

    assert b"hidden" not in seen


def test_a_program_reads_no_files(runner, tmp_path):
    (tmp_path / "secret.json").write_text('{"key": 1}')
    (tmp_path / "code.jq").write_text("def f: 1;")

    for program in (
        f'import "secret" as $x {{search: "{tmp_path}"}}; $x',
        f'include "code" {{search: "{tmp_path}"}}; f',
    ):
        with pytest.raises(InvalidExpression, match=r"Too many open files|module not found"):
            runner.compile(program)


@pytest.mark.parametrize("program", ['"x" | halt_error', "halt", '"x" | debug | empty', '"x" | stderr | empty'])
def test_a_program_can_neither_end_the_process_nor_forge_a_response(runner, program):
    assert runner.compile(program).outputs({}) == []
    assert runner.compile(".a").outputs({"a": 1}) == [1]


@pytest.mark.parametrize(
    "program",
    ["[limit(1e9; repeat(1))] | length < 0", "def f: f; f", "last(range(1e12))"],
    ids=["memory", "recursion", "time"],
)
def test_a_program_over_its_limits_is_aborted_and_the_next_one_runs(hasty, program):
    compiled = hasty.compile(program)
    started = time.monotonic()

    with pytest.raises(FilterTooSlow, match=r"took longer than 0\.5 s, or too much memory"):
        compiled.outputs({})

    assert time.monotonic() - started < 20
    hasty.time_limit = timedelta(seconds=20)
    assert hasty.compile(".a").outputs({"a": 1}) == [1]


def test_an_endless_response_is_not_read(runner):
    with pytest.raises(FilterTooSlow):
        runner.compile(". as $all | [range(17) | $all]").outputs("x" * (MAXIMUM_ANSWER_BYTES // 16))


def test_a_dead_process_is_replaced(runner):
    program = runner.compile(".a")
    runner._process.kill()
    runner._process.wait()

    with pytest.raises(FilterTooSlow):
        program.outputs({"a": "x" * 100_000})

    assert program.outputs({"a": 1}) == [1]


def test_a_program_that_takes_too_long_to_compile_is_refused(hasty):
    hasty.compile("true")
    os.kill(hasty._process.pid, 19)  # SIGSTOP: it compiles nothing any more

    with pytest.raises(InvalidExpression, match="took longer"):
        hasty.compile("false")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("signalbox.filters.programs.find_spec", lambda _name: None)

    with pytest.raises(ProgramsUnavailable, match="`jq` is not installed"):
        ProgramRunner().compile("true")


def test_a_process_that_does_not_start_is_unavailable(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")

    with pytest.raises(ProgramsUnavailable, match="did not start"):
        ProgramRunner().compile("true")
