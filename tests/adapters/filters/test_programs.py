"""jq programs of users: the dialect of mirrord's engine, in the sandbox."""

import pytest

from signalbox.filters.programs import compile_program
from signalbox.splitting.model.filters import InvalidExpression, ProgramFailed


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
        pytest.param("error, true", {}, True, id="an error before the decision"),
        pytest.param(".[] | .a.b == 1", {"x": 1, "y": {}, "z": {"a": {"b": 1}}}, True, id="errors of some values"),
        pytest.param(".[] | .n / 2 == 1", {"x": {"n": "1"}, "y": {"n": 2}}, True, id="errors of some operations"),
        pytest.param(".a.b.c == null", {"a": None}, None, id="a path through null"),
        pytest.param(".a.b == null", {"a": {}}, True, id="a value that is missing"),
        pytest.param(".a[0] == 1, .a[1.5], .a[.k]", {"a": {"0": 1}, "k": 0}, None, id="unfit indices"),
        pytest.param(". as {a: [$x]} | $x == 1", {"a": [1]}, True, id="a pattern"),
        pytest.param(". as {a: [$x]} | $x == 1, true", {"a": None}, None, id="a pattern of null"),
        pytest.param('. as {$a, "b": $c, ("d"): $e} | $a < $c', {"a": 1, "b": 2, "d": 3}, True, id="a pattern of keys"),
        pytest.param("reduce .a[] as [$x, {y: $y}] (0; . + $x + $y) | . == 3", {"a": [[1, {"y": 2}]]}, True, id="fold"),
        pytest.param("[foreach (1, 2) as $x (0; . + $x; [.])] == [[1], [3]]", {}, True, id="foreach"),
        pytest.param('{a, "b", "c\\(.a)"} == {a: 1, b: 2, c1: null,}', {"a": 1, "b": 2}, True, id="keys alone"),
        pytest.param('. as {$a} | {$a, ("x" + "y"): 2} == {a: 1, xy: 2}', {"a": 1}, True, id="keys of variables"),
        pytest.param('{@base64 "a": 1} | true', {}, True, id="keys of formats"),
        pytest.param("{(.a): 1} | true", {"a": 1}, None, id="a key that is a number"),
        pytest.param("((.a?) |= 2) | .a == 2", {"a": 1}, True, id="an optional path is changed"),
        pytest.param("del(.a.b) == {a: {}}", {"a": {"b": 1}}, True, id="a path is deleted"),
        pytest.param("def f(g; $x): g + $x; f(.a; 1) == 2", {"a": 1}, True, id="functions"),
        pytest.param("def error(x): x; error(true)", {}, True, id="a function that is defined again"),
        pytest.param("error(1), true", {"a": 1}, True, id="an error with a value"),
        pytest.param("[if .a then 1 elif .b then true else 1 end] == [true]", {"b": 1}, True, id="conditions"),
        pytest.param("if .a then true end", {"a": 1}, True, id="a condition alone"),
        pytest.param("label $f | .a, break $f, true", {"a": 1}, None, id="a break"),
        pytest.param("[label $f | .a, break $f] == [1]", {"a": 1}, True, id="a break within"),
        pytest.param("try error(1) catch . == 1", {}, True, id="a caught error"),
        pytest.param("[try error] == [] and [.a??.b?] == []", {"a": 1}, True, id="ignored errors"),
        pytest.param(
            "(.a | fromjson | .n) == 12345678901234567891", {"a": '{"n":12345678901234567890}'}, True, id="big"
        ),
        pytest.param('[.a, .b | fromjson?] == ["x#"]', {"a": '"x#"', "b": "1 # 2"}, True, id="JSON without comments"),
        pytest.param("[(.a as $x | [$x, 2][1:]), [1][-1:][0]] == [[2], 1]", {"a": 1}, True, id="slices"),
        pytest.param("-(.a) == -1", {"a": 1}, True, id="a negative number"),
        pytest.param('@base64 "x\\(.a)" == "xMQ==" # the end', {"a": 1}, True, id="a format"),
        pytest.param('(.a | @base64) == "eA==" and (. | @text | length) > 1', {"a": "x"}, True, id="a format alone"),
        pytest.param("1 + 2 * 3 - 1 == 6 and ((.a = .b = 1) | .a == {b: 1})", {}, True, id="precedence"),
        pytest.param('.a."b"["c"].d[.e] == 1', {"a": {"b": {"c": {"d": [0, 1]}}}, "e": 1}, True, id="paths"),
        pytest.param('."a" == 1 and [..] != [] and (false | not)', {"a": 1}, True, id="quoted"),
        pytest.param("(null // false // 1) == 1", {}, True, id="alternatives"),
    ],
)
def test_programs_decide_as_in_jaq_2(engines, program, document, decision):
    assert compile_program(program, engines).decision(document) is decision


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


def test_a_program_has_no_environment_of_ours(engines, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")

    assert compile_program('env == {LANG: "C"}', engines).decision({}) is True


@pytest.mark.parametrize("program", ['"x" | debug | empty', '"x" | stderr | empty', "input"])
def test_a_program_can_neither_forge_a_response_nor_read_the_next_request(engines, program):
    assert compile_program(program, engines).decision({}) is None
    assert compile_program(".a == 1", engines).decision({"a": 1}) is True
