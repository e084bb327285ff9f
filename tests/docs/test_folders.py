"""Tests that folders have at most 16 modules, except those that docs/style.md names with their reason."""

import re
from collections import Counter

from signalbox.local.files import CHECKOUT

MOST = 16
PRODUCT = ("signalbox", "lambdas", "stacks", "glue_jobs")
ROW = re.compile(r"^\| `([\w/]+)` \| (\d+) \| .+ \|$", re.MULTILINE)


def test_folders_with_more_modules_than_others_are_in_the_table_of_the_style() -> None:
    paths = [path.relative_to(CHECKOUT) for folder in PRODUCT for path in (CHECKOUT / folder).rglob("*.py")]

    modules = Counter(path.parent.as_posix() for path in paths if path.stem != "__init__")

    table = {folder: int(count) for folder, count in ROW.findall((CHECKOUT / "docs/style.md").read_text())}
    large = {folder: count for folder, count in modules.items() if count > MOST}
    assert large.keys() == table.keys()
    assert [folder for folder, count in large.items() if count > table[folder]] == []
