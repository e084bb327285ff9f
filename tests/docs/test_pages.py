"""Tests of the pages: links, blocks of code, headings and the length of the README."""

import ast
import json
import re
import subprocess
from urllib.parse import urlsplit

import pytest

from signalbox import __version__
from tests.docs.markdown import PAGES, ROOT, anchors, blocks, headings, links, name_of

FIVE = ["What it does", "Guarantees", "Limits", "Failure and recovery", "Differences from its model"]
CAPABILITY_PAGES = ("rendezvous", "splitting", "exchange", "live", "history")
BLOCKS = [block for page in PAGES for block in blocks(page)]
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
# Paths of a machine and hosts of registries, which readers do not have.
FOREIGN = re.compile(
    r"/(?:home|root|tmp|work|Users|var/folders)/|pypi\.org|pythonhosted|npmjs|artifactory|jfrog|golang\.org|maven2"
)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_resolves(page):
    for target in links(page):
        parts = urlsplit(target)
        if parts.scheme:
            assert parts.scheme == "https", target
            continue
        file = (page.parent / parts.path).resolve() if parts.path else page
        assert file.is_file(), target
        assert file.is_relative_to(ROOT), target
        assert not parts.fragment or parts.fragment in anchors(file), target


@pytest.mark.parametrize("file", [*PAGES, *PICTURES], ids=name_of)
def test_no_page_names_a_machine_or_a_registry(file):
    assert FOREIGN.findall(file.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_page_has_one_title_and_no_heading_twice(page):
    assert len(headings(page, level=1)) == 1
    # The changelog repeats Added, Fixed and so on in each version.
    found = headings(page, level=2 if page.name == "CHANGELOG.md" else None)
    assert len(found) == len(set(found))


def test_the_version_is_that_of_the_changelog_or_ends_with_dev0_after_it():
    newest, before = headings(ROOT / "CHANGELOG.md", level=2)[:2]

    if newest == "Unreleased":
        number, _, development = __version__.partition(".dev")
        assert development == "0"
        assert [int(part) for part in number.split(".")] > [int(part) for part in before.split()[0].split(".")]
    else:
        assert newest.split(" - ")[0] == __version__


def test_every_page_is_linked_from_the_list_of_pages():
    listed = {
        (overview.parent / urlsplit(target).path).resolve()
        for overview in (ROOT / "docs" / "README.md", ROOT / "docs" / "decisions" / "README.md")
        for target in links(overview)
    }

    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - {ROOT / "docs" / "README.md"}
    assert {name_of(page) for page in pages - listed} == set()


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_every_block_of_code_parses(block):
    if block.language == "python":
        ast.parse(block.code)
    elif block.language == "json":
        assert [json.loads(line) for line in block.code.splitlines()]
    elif block.language in ("sh", "console"):
        named = re.sub(r"<[^<>\n]+>", "it", _commands(block))  # placeholders
        subprocess.run(["bash", "-n"], input=named, text=True, check=True)
    else:
        assert block.language in ("sql", "text")


def _commands(block):
    return block.code if block.language == "sh" else "\n".join(re.findall(r"^\$ (.*)$", block.code, re.MULTILINE))


@pytest.mark.parametrize("capability", CAPABILITY_PAGES)
def test_a_capability_page_has_the_five_headings_in_order(capability):
    found = headings(ROOT / "docs" / f"{capability}.md", level=2)

    assert found[: len(FIVE)] == FIVE


def test_the_readme_has_its_parts_in_order():
    assert headings(ROOT / "README.md", level=2) == [
        "Quick start",
        "Examples",
        "Guarantees",
        "Deploy",
        "How it differs",
        "More",
    ]


def test_the_readme_begins_with_one_sentence():
    first = (ROOT / "README.md").read_text().split("\n\n")[1]

    assert first.count(". ") == 0
    assert first.endswith(".")


@pytest.mark.parametrize("command", ["make deploy", "aws-cdk@2 deploy"])
def test_the_readme_deploys_in_five_commands_at_most(command):
    (deployment,) = [block for block in blocks(ROOT / "README.md") if command in block.code]

    assert len(deployment.code.splitlines()) <= 5


def test_the_readme_has_at_most_900_words():
    assert len((ROOT / "README.md").read_text().split()) <= 900


@pytest.mark.parametrize("decision", sorted((ROOT / "docs" / "decisions").glob("0*.md")), ids=name_of)
def test_a_decision_has_a_context_and_consequences(decision):
    assert headings(decision, level=2) == ["Context", "Decision", "Consequences"]
    assert headings(decision, level=1)[0].startswith(f"{int(decision.name[:4])}. ")
