"""Each guarantee that a run checks is a sentence of a page."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from signalbox.local.files import CHECKOUT
from tests.simulation import guarantees
from tests.simulation.mutants import MUTANTS
from tests.simulation.planted.mutant import Mutant

CHECKS = sorted(
    {
        check.__name__: check
        for found in vars(guarantees).values()
        if isinstance(found, tuple)
        for check in found
        if callable(check)
    }.items()
)


def plain(text: str) -> str:
    """Return a text in lower case without links, bold type and line breaks."""
    return " ".join(re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", text.replace("**", "")).split()).lower()


def pages() -> Iterator[Path]:
    yield CHECKOUT / "README.md"
    yield from (CHECKOUT / "docs").rglob("*.md")


PAGES = "\n".join(plain(page.read_text(encoding="utf-8")) for page in pages())


@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.allowed], ids=lambda one: one.name)
def test_a_page_allows_what_an_allowed_mutant_does(mutant: Mutant) -> None:
    assert mutant.allowed in PAGES


@pytest.mark.parametrize("name", [name for name, _ in CHECKS])
def test_a_guarantee_is_a_sentence_of_a_page(name: str) -> None:
    sentences = re.split(r"(?<=\.)\s+", plain(dict(CHECKS)[name].__doc__ or ""))

    unknown = [one for one in sentences if one.rstrip(".") not in PAGES]
    assert [one for one in unknown if not one.startswith(guarantees.CALM.lower())] == []
