"""How sr3 comes to know the driver: in a Python of its own, with a package that pretends to be sr3."""

import subprocess
import sys
from pathlib import Path

import pytest

from signalbox.local.files import CHECKOUT

# What sr3's own drivers do is pretended too: that they are there before ours is what counts.
BROKERS = "class Moth: pass\nclass AMQP(Moth): pass\n"
PRINTED = "import sarracenia.moth; print([one.__name__ for one in sarracenia.moth.Moth.__subclasses__()])"
OTHERS = {
    "sarracenia/__init__.py": "",
    "sarracenia/moth/__init__.py": BROKERS,
    "sarracenia/postformat.py": "class PostFormat: pass\n",
}


@pytest.fixture
def sr3(tmp_path: Path) -> Path:
    """A folder with such a package."""
    for name, text in OTHERS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(code: str, *paths: Path) -> str:
    """Return what a program prints in a Python that finds modules here."""
    given = f"import sys; sys.path[:0] = {[str(CHECKOUT), *map(str, paths)]}; {code}"
    command = [sys.executable, "-I", "-c", given]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - of this file alone
    return done.stdout.strip()


def test_the_driver_is_there_as_soon_as_sr3s_own_are(sr3):
    assert run(f"import signalbox.sr3; {PRINTED}", sr3) == "['AMQP', 'AMQPSQS']"


def test_a_line_of_a_configuration_registers_it_when_sr3_runs_already(sr3):
    assert run(f"import sarracenia.moth; import signalbox.sr3; {PRINTED}", sr3) == "['AMQP', 'AMQPSQS']"


def test_it_is_registered_once(sr3):
    again = "import signalbox.sr3; signalbox.sr3.register()"

    assert run(f"{again}; import sarracenia.moth; {again}; {PRINTED}", sr3) == "['AMQP', 'AMQPSQS']"


def test_programs_other_than_sr3_pay_for_no_driver_and_no_boto():
    code = "import signalbox.sr3; print([one for one in ('botocore', 'signalbox.sr3.driver') if one in sys.modules])"

    assert run(code) == "[]"


def test_sr3_itself_loads_boto_only_when_a_stage_is_asked(sr3):
    assert run(f"import signalbox.sr3; {PRINTED}; print('botocore' in sys.modules)", sr3).endswith("False")


def test_without_sr3_nothing_else_changes():
    code = "import signalbox.sr3, importlib.util; print(importlib.util.find_spec('sarracenia'))"

    assert run(code) == "None"
