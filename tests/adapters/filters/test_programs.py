"""jq programs of users: the dialect of mirrord's engine, in the sandbox."""

import pytest

from signalbox.filters.programs import compile_program
from signalbox.splitting.model.filters import InvalidExpression, ProgramFailed
from tests.adapters.filters.verdicts import verdicts


@pytest.mark.parametrize("case", verdicts("jaq.json", "id"))
def test_programs_decide_as_in_jaq_2(engines, case):
    assert compile_program(case["program"], engines).decision(case["document"]) is case["decision"]


def test_a_text_may_be_as_large_as_a_message(engines):
    assert compile_program(".a | length == 1000000", engines).decision({"a": "x" * 1_000_000}) is True


@pytest.mark.parametrize("text", ["nan", "NaN", "Infinity", "#", "1234567890123456789"])
def test_a_body_may_be_as_large_as_a_message(engines, text):
    """One with a text that jaq 3 reads and jaq 2 does not, or rounds, outside of strings."""
    body = f'{{"a":["{text}"' + ',""' * 330_000 + "]}"
    assert compile_program(".Body | fromjson | .a[0] | length > 0", engines).decision({"Body": body}) is True
    assert compile_program(".Body | fromjson | true", engines).decision({"Body": f"{body}#"}) is None


def test_texts_are_selected(engines):
    assert compile_program(".[], 1, null, [true]", engines).texts({"a": 1, "b": "é", "c": "x"}) == ["é", "x"]
    with pytest.raises(ProgramFailed, match="the texts are too long"):
        compile_program(". as $all | range(2) | $all", engines).texts("x" * 200_000)


@pytest.mark.parametrize("program", [".Body | fromjson", ".a.b.c"])
def test_an_error_is_no_decision_and_no_selection(engines, program):
    compiled = compile_program(program, engines)

    assert compiled.decision({"Body": "not json", "a": "text"}) is None
    with pytest.raises(ProgramFailed):
        compiled.texts({"Body": "not json", "a": "text"})


def test_half_a_surrogate_pair_is_no_decision(engines):
    """The JSON of the engine has none."""
    with pytest.raises(ProgramFailed):
        compile_program("true", engines).decision({"Body": "\ud800"})


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("", "syntax error at position 0"),
        ("snow", "snow/0 is not defined"),
        ("f(1; 2)", "f/2 is not defined"),
        (".[", "syntax error at position 2"),
        ('"\\q"', "syntax error at position 1"),
        ('"\\(1', "syntax error at position 4"),
        ('"a', "syntax error at position 2"),
        ("1 as x | 2", "syntax error at position 5"),
        ("def 1: 2; 3", "syntax error at position 4"),
        ("1 2", "syntax error at position 2"),
        ("[1", "syntax error at position 2"),
        ("1.a", "syntax error at position 0"),
        (".a.[0]", "syntax error at position 2"),
        ("{a: 1", "syntax error at position 5"),
        ("$x", "undefined variable"),
        ("halt", "halt/0 is not defined"),
        ("path(.a)", "path/1 is not defined"),
        ('include "a"; 1', "syntax error at position 0"),
        ("$__signalbox_1", "'__signalbox_' is reserved"),
        ("def __signalbox_at(x): 1; 2", "'__signalbox_' is reserved"),
        ("(" * 5000, "nested too deeply"),
        ("1" + "+1" * 4000, "nested too deeply"),
        ("x" * 10_001, "10001 characters are too many"),
    ],
)
def test_a_program_that_mirrord_refuses_is_refused_with_the_reason(engines, program, reason):
    with pytest.raises(InvalidExpression) as refusal:
        compile_program(program, engines)

    assert reason in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_nested_texts_do_not_multiply(engines):
    nested = "1"
    for _ in range(60):
        nested = f'{{"\\({nested})"}}'

    assert len(compile_program(nested, engines).deciding) < 20_000


def test_a_program_that_doubles_at_each_level_is_refused(engines):
    nested = "1"
    for _ in range(17):
        nested = f"foreach . as {{({nested}): $x}} (0; 1; 2)"

    with pytest.raises(InvalidExpression, match="more than 200000 characters in the engine's dialect"):
        compile_program(nested, engines)


def test_a_program_has_no_environment_of_ours(engines, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")

    assert compile_program('env == {LANG: "C"}', engines).decision({}) is True


@pytest.mark.parametrize("program", ['"x" | debug | empty', '"x" | stderr | empty', "input"])
def test_a_program_can_neither_forge_a_response_nor_read_the_next_request(engines, program):
    assert compile_program(program, engines).decision({}) is None
    assert compile_program(".a == 1", engines).decision({"a": 1}) is True
