"""Tests of the layers in docs/architecture.md and of the map of modules."""

import re

from tests.docs.architecture import PAGE, ROOT, layers, module_map, page, undocumented


def test_the_layers_are_up_to_date():
    assert PAGE.read_text() == page(PAGE.read_text())


def test_the_map_has_each_module_below_its_folder():
    folders = module_map(ROOT).split("### ")

    exchange = next(text for text in folders if text.startswith("`signalbox/exchange/matching/`"))
    assert "| `trie.py` | " in exchange


def test_every_module_has_a_first_line_for_the_map():
    assert list(undocumented(ROOT)) == []


def test_layers_are_numbered_from_the_outermost_and_other_contracts_are_named():
    contracts = [
        {"name": "arrows point inwards", "type": "layers", "layers": ["a.cli | a.sr3", "a.core"]},
        {"name": "floors of a.core", "type": "layers", "layers": ["rules", "model"], "containers": ["a.core"]},
        {"name": "a stands alone", "type": "forbidden"},
    ]

    assert layers(contracts) == (
        "```text\n 1  a.cli | a.sr3\n 2  a.core\n```\n\n"
        "Of `a/core/`:\n\n```text\n 1  rules\n 2  model\n```\n\nFurther contracts:\n\n- A stands alone.\n"
    )


def test_every_file_that_the_page_names_exists():
    folder = ROOT
    missing = []

    for name in re.findall(r"`([\w/]+\.py)`", PAGE.read_text()):
        path = ROOT / name if "/" in name or (ROOT / name).exists() else folder / name
        folder = path.parent if "/" in name else folder
        missing += [] if path.exists() else [path]

    assert missing == []
