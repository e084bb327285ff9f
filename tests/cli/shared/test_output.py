"""Tests that commands print the texts of others without their control characters."""

import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from unicodedata import category

import pytest

from signalbox.cli.shared import confirmation
from signalbox.cli.shared.output import (
    escaped,
    print_csv,
    print_error,
    print_fields,
    print_line,
    print_table,
    print_text,
)
from signalbox.cli.shared.stage import say

CLI = Path(__file__).parents[3] / "signalbox" / "cli"
HOSTILE = "\x1b]0;owned\x07\x1b[2J \x9b31m\r \ud800 \u202e\u2028 first\n2026-11-25 18:00 #7 forged"
# These write what they make themselves; `output` escapes, `stage` and `main` call it or print the parser's own help.
WRITERS = {
    *("shared/output.py", "shared/stage.py", "shared/confirmation.py", "shared/slow_calls.py", "main.py"),
    "exchange/status.py",
}


@pytest.mark.parametrize(
    "show",
    [
        print_line,
        print_error,
        say,
        lambda text: print_fields({"name": text}),
        lambda text: print_table(["column"], [[text]]),
        lambda text: print_table(["column" * 25], [], title=f"[red]{text}"),
        lambda text: print_csv(["column"], [[text]]),
        lambda text: print_text(f"ours\n{escaped(text)}"),
    ],
    ids=["line", "error", "progress", "fields", "table", "title", "csv", "text"],
)
def test_control_characters_are_printed_as_escapes(show, capsys):
    show(HOSTILE)

    printed = "".join(capsys.readouterr())
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e\ud800-\udfff]", printed) is None
    assert r"\x1b]0;owned\x07\x1b[2J \x9b31m" in printed


def test_a_question_is_escaped(monkeypatch, capsys):
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)
    monkeypatch.setattr(sys, "stdin", StringIO("y\n"))

    confirmation.confirm(HOSTILE, yes=False)

    assert capsys.readouterr().err.startswith(r"\x1b]0;owned")


@pytest.mark.parametrize("show", [print_line, lambda text: print_table(["column"], [[text]])], ids=["line", "table"])
def test_a_line_break_in_a_text_forges_no_line(show, capsys):
    show(HOSTILE)

    printed = capsys.readouterr().out
    assert not any(line.lstrip().startswith("2026") for line in printed.splitlines())


def test_no_value_is_a_formula_of_a_spreadsheet(capsys):
    print_csv(["value"], [[text] for text in ("=1+1", "@SUM(A1)", "-1+cmd|' /C calc'!A0", "-1.5", "+2e3", "a=b", None)])

    expected = ["value", "'=1+1", "'@SUM(A1)", "'-1+cmd|' /C calc'!A0", "-1.5", "+2e3", "a=b", '""']
    assert capsys.readouterr().out.splitlines() == expected


def test_other_scripts_emoji_and_tabs_are_printed_unchanged():
    text = "ü ☔ 👩‍🔧 عربى नि\tcolumn \\n"

    assert escaped(text) == text


def test_no_name_looks_like_another_by_an_invisible_character():
    """Of the characters of formats only joiners, and those that a script shows, are printed."""
    shown = "\t\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u200c\u200d"
    formats = [one for one in map(chr, range(0x10000)) if category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    fillers = "\u034f\u115f\u1160\u17b4\u3164\uffa0\U0001d173"

    assert [one for one in (*formats, *fillers) if escaped(one) == one] == list(shown)


def test_a_character_that_the_encoding_lacks_is_escaped():
    program = "from signalbox.cli.shared import output as o; o.escape_unencodable(); o.print_line('rain ☔')"

    printed = subprocess.check_output(  # noqa: S603 - our own program
        [sys.executable, "-c", program], env={"PYTHONIOENCODING": "latin-1"}, cwd=CLI.parents[1]
    )

    assert printed == b"rain \\u2614\n"


def test_no_other_module_writes_to_the_terminal():
    writers = {
        path.relative_to(CLI).as_posix()
        for path in CLI.rglob("*.py")
        if re.search(
            r"\bsys\.(stdout|stderr)\b(?!\.(flush|isatty|fileno)\(\))|\bprint\(|typer\.(echo|secho)", path.read_text()
        )
    }

    assert writers <= WRITERS
