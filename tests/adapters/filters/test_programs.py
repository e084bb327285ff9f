"""jq programs of users in the sandbox."""

from collections.abc import Iterator

import pytest

from signalbox.filters.engines import Engines
from signalbox.filters.programs import compile_program
from signalbox.splitting.forwarding.filters import InvalidExpression, ProgramFailed


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    engines = Engines()
    yield engines
    engines.close()


@pytest.mark.parametrize(
    ("program", "document", "decision"),
    [
        pytest.param(".Body | fromjson | .important == true", {"Body": '{"important": true}'}, True, id="body"),
        pytest.param(
            '.MessageAttributes.client.StringValue | test("^a$")',
            {"MessageAttributes": {"client": {"StringValue": "a"}}},
            True,
            id="attribute",
        ),
        pytest.param("false, true", {}, False, id="first of several"),
        pytest.param('null, "true", 1, true', {}, True, id="first that is a boolean"),
        pytest.param("empty", {}, None, id="no output"),
        pytest.param('.a == "x\\ny"', {"a": "x\ny"}, True, id="line ends"),
        pytest.param('.a == "é"', {"a": "é"}, True, id="beyond ASCII"),
        pytest.param(".a | length == 1000000", {"a": "x" * 1_000_000}, True, id="as large as a message"),
        pytest.param("true, error", {}, True, id="an error after the decision"),
    ],
)
def test_the_first_boolean_decides(engines, program, document, decision):
    assert compile_program(program, engines).decision(document) is decision


def test_texts_are_selected(engines):
    assert compile_program(".[], 1, null, [true]", engines).texts({"a": 1, "b": "é", "c": "x"}) == ["é", "x"]
    with pytest.raises(ProgramFailed, match="the texts are too long"):
        compile_program(". as $all | range(2) | $all", engines).texts("x" * 200_000)


@pytest.mark.parametrize("program", [".Body | fromjson", ".a.b.c"])
def test_a_run_time_error_raises(engines, program):
    compiled = compile_program(program, engines)

    with pytest.raises(ProgramFailed):
        compiled.decision({"Body": "not json", "a": "text"})
    with pytest.raises(ProgramFailed):
        compiled.texts({"Body": "not json", "a": "text"})


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
def test_a_compile_error_has_jqs_message_in_one_line(engines, program, reason):
    with pytest.raises(InvalidExpression) as refusal:
        compile_program(program, engines)

    assert reason in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("program", ["env", "$ENV"])
def test_a_program_has_no_environment(engines, program, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")

    assert compile_program(f"{program} == {{}}", engines).decision({}) is True


def test_a_program_reads_no_files(engines, tmp_path):
    (tmp_path / "secret.json").write_text('{"key": 1}')
    (tmp_path / "code.jq").write_text("def f: 1;")

    for program in (
        f'import "secret" as $x {{search: "{tmp_path}"}}; $x',
        f'include "code" {{search: "{tmp_path}"}}; f',
    ):
        with pytest.raises(InvalidExpression, match=r"Too many open files|module not found"):
            compile_program(program, engines)


@pytest.mark.parametrize("program", ['"x" | halt_error', "halt", '"x" | debug | empty', '"x" | stderr | empty'])
def test_a_program_can_neither_end_the_process_nor_forge_a_response(engines, program):
    assert compile_program(program, engines).decision({}) is None
    assert compile_program(".a == 1", engines).decision({"a": 1}) is True
