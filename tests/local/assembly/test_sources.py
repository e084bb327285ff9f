"""The digest of a stage's sources changes with all that its synthesis reads."""

import pytest

from signalbox.local.assembly.sources import SOURCES, digest
from signalbox.local.files import CHECKOUT
from stacks.settings.config import Config
from stacks.shared import packaging


@pytest.fixture
def app(tmp_path):
    (tmp_path / "stacks").mkdir()
    for name in ("app.py", "cdk.json", "stacks/queue.py", "bridges.jsonl"):
        (tmp_path / name).write_text(name)
    return tmp_path


CONTEXT = ("stage=trial", "bridge_list_file=bridges.jsonl")


@pytest.mark.parametrize("name", ["app.py", "cdk.json", "stacks/queue.py", "bridges.jsonl", "stacks/new.py"])
def test_a_changed_file_changes_the_digest(app, name):
    before = digest(app, CONTEXT)

    (app / name).write_text("changed")

    assert digest(app, CONTEXT) != before


@pytest.mark.parametrize("context", [("stage=other", CONTEXT[1]), CONTEXT[:1], ("stage=trial,bridge_list_file=",)])
def test_other_settings_have_another_digest(app, context):
    assert digest(app, context) != digest(app, CONTEXT)


def test_bytecode_and_the_order_of_settings_do_not_matter(app):
    before = digest(app, CONTEXT)

    (app / "stacks" / "__pycache__").mkdir()
    (app / "stacks" / "__pycache__" / "queue.cpython-312.pyc").write_text("bytecode")

    assert digest(app, CONTEXT[::-1]) == before


def test_everything_that_ships_is_a_source():
    files = [path for _, path in (*packaging._code_files(Config()), *packaging._modules("glue_jobs"))]

    assert {path.relative_to(CHECKOUT).parts[0] for path in files} <= set(SOURCES)
