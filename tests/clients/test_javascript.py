"""What the formatter, the linter and the type checker do not hold of the JavaScript."""

import json
import re

import pytest

from signalbox.local.files import CHECKOUT
from tests.tiers import javascript

FILES = sorted(
    path
    for folder, ending in (("web", "js"), ("web", "css"), ("examples", "js"), ("tests", "mjs"))
    for path in (CHECKOUT / folder).rglob(f"*.{ending}")
)
WIDTH = 120
EXPORT = re.compile(r"^export (?:default |async )*(?:function|class|const|let) (\w+)", re.MULTILINE)
SUPPRESSION = re.compile(r"@ts-(?:ignore|expect-error|nocheck)(?P<reason>.*)|biome-ignore [\w/]+(?P<why>.*)")
NAMES = [str(path.relative_to(CHECKOUT)) for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_no_line_is_wider_than_the_formatter_allows(path):
    # Biome does not break comments and strings.
    assert [line for line in path.read_text().splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_exports_are_documented(path):
    text = path.read_text()

    undocumented = [found[1] for found in EXPORT.finditer(text) if not text[: found.start()].endswith("*/\n")]

    assert undocumented == []


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_suppressed_error_has_a_reason(path):
    found = [one.groupdict() for one in SUPPRESSION.finditer(path.read_text())]

    assert [one for one in found if not re.search(r"\w{3}", one["reason"] or one["why"] or "")] == []


def test_the_versions_of_the_tools_are_exact():
    versions = json.loads(javascript.PACKAGES.read_text())["devDependencies"]

    assert {name: version for name, version in versions.items() if not re.fullmatch(r"\d+\.\d+\.\d+", version)} == {}
