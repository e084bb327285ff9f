"""Registration of the driver, in a separate Python process with a fake sr3 package."""

import subprocess
import sys
from pathlib import Path

import pytest

from signalbox.local.files import CHECKOUT

PATHS = (CHECKOUT, CHECKOUT / "packages" / "signalbox-sr3")

# The fake package has brokers of its own, which must be loaded before ours.
BROKERS = "class Moth: pass\nclass AMQP(Moth): pass\n"
PRINTED = "import sarracenia.moth; print([one.__name__ for one in sarracenia.moth.Moth.__subclasses__()])"
OTHERS = {
    "sarracenia/__init__.py": "",
    "sarracenia/moth/__init__.py": BROKERS,
    "sarracenia/postformat.py": "class PostFormat: pass\n",
}


@pytest.fixture
def sr3(tmp_path: Path) -> Path:
    """A folder with the fake package."""
    for name, text in OTHERS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(code: str, *paths: Path) -> str:
    """Run a program in a Python with these import paths; return its output."""
    given = f"import sys; sys.path[:0] = {[*map(str, (*PATHS, *paths))]}; {code}"
    command = [sys.executable, "-I", "-c", given]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - of this file alone
    return done.stdout.strip()


def test_the_driver_is_loaded_after_sr3s_own_brokers(sr3):
    assert run(f"import signalbox_sr3; {PRINTED}", sr3) == "['AMQP', 'AMQPSQS']"


def test_an_import_in_a_configuration_registers_the_driver_in_a_running_sr3(sr3):
    assert run(f"import sarracenia.moth; import signalbox_sr3; {PRINTED}", sr3) == "['AMQP', 'AMQPSQS']"


def test_the_driver_is_registered_once(sr3):
    again = "import signalbox_sr3; signalbox_sr3.register()"

    assert run(f"{again}; import sarracenia.moth; {again}; {PRINTED}", sr3) == "['AMQP', 'AMQPSQS']"


def test_programs_other_than_sr3_load_neither_the_driver_nor_boto():
    code = "import signalbox_sr3; print([one for one in ('botocore', 'signalbox_sr3.driver') if one in sys.modules])"

    assert run(code) == "[]"


def test_sr3_does_not_load_boto_before_it_calls_a_stage(sr3):
    assert run(f"import signalbox_sr3; {PRINTED}; print('botocore' in sys.modules)", sr3).endswith("False")


def test_without_sr3_nothing_else_changes():
    code = "import signalbox_sr3, importlib.util; print(importlib.util.find_spec('sarracenia'))"

    assert run(code) == "None"
