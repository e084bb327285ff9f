"""Setup on a fresh machine: stale environments are rebuilt with pip's settings, or the error says what to install."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from signalbox.local import setup


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A complete environment with one input file."""
    (tmp_path / "requirements.txt").write_text("boto3")
    built = tmp_path / "venv"
    (built / "bin").mkdir(parents=True)
    (built / "bin" / "python").touch()
    (built / "stamp").write_text(setup.stamp(built, [tmp_path / "requirements.txt"]))
    return built


def _is_current(environment: Path) -> bool:
    return setup.is_current(environment, setup.stamp(environment, [environment.parent / "requirements.txt"]))


def test_a_complete_environment_is_current(environment):
    assert _is_current(environment)


def test_a_changed_requirement_makes_it_stale(environment):
    (environment.parent / "requirements.txt").write_text("boto3>=2")

    assert not _is_current(environment)


def test_a_moved_checkout_makes_it_stale_since_its_scripts_contain_the_old_path(environment, tmp_path):
    moved = environment.rename(tmp_path / "elsewhere")

    assert not _is_current(moved)


def test_an_environment_without_its_interpreter_is_stale(environment):
    (environment / "bin" / "python").unlink()

    assert not _is_current(environment)


def test_an_environment_without_a_stamp_is_stale(environment):
    (environment / "stamp").unlink()

    assert not _is_current(environment)


@pytest.mark.parametrize(("owner", "mode"), [(os.getuid(), 0o700), (os.getuid() + 1, 0o755)])
def test_the_folder_of_an_earlier_version_is_closed_to_others_by_its_owner(monkeypatch, tmp_path, owner, mode):
    folder = tmp_path / ".signalbox"
    folder.mkdir()
    folder.chmod(0o755)
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: owner)

    with setup._lock():
        assert stat.S_IMODE(folder.stat().st_mode) == mode


def test_an_interrupted_removal_leaves_a_stale_environment(environment, monkeypatch):
    def die(_folder: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(setup.shutil, "rmtree", die)

    with pytest.raises(KeyboardInterrupt):
        setup._remove_tree(environment)

    assert not _is_current(environment)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"PIP_INDEX_URL": "https://a/simple"}, {"UV_DEFAULT_INDEX": "https://a/simple"}),
        ({"PIP_EXTRA_INDEX_URL": "https://b/simple"}, {"UV_INDEX": "https://b/simple"}),
        ({"PIP_CERT": "/ca.pem"}, {"SSL_CERT_FILE": "/ca.pem"}),
        ({"PIP_CERT": "/ca.pem", "SSL_CERT_FILE": "/own.pem"}, {"SSL_CERT_FILE": "/own.pem"}),
    ],
    ids=["index", "extra index", "certificates", "uv's own setting wins"],
)
def test_uv_gets_the_settings_of_pip(variables, expected):
    assert setup.installer_environment(variables) == {**variables, **expected}


def test_an_active_environment_of_the_user_is_ignored():
    assert setup.installer_environment({"VIRTUAL_ENV": "/theirs", "PYTHONHOME": "/theirs"}) == {}


def test_without_a_suitable_python_the_error_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(setup, "MINIMUM", (9, 9))
    monkeypatch.setattr(setup, "_inputs", lambda: {tmp_path / "venv": []})

    status = setup._make()

    assert status == 1
    assert "needs Python 9.9 or newer with venv" in capsys.readouterr().err


def test_the_script_parses_on_pythons_too_old_to_run_signalbox():
    source = Path(setup.__file__).read_text()

    compile_for_3_7 = f"import ast; ast.parse({source!r}, feature_version=(3, 7))"

    subprocess.run([sys.executable, "-c", compile_for_3_7], check=True)


def test_a_home_that_cannot_be_written_is_refused_before_anything_is_built(tmp_path, monkeypatch, capsys):
    built = []
    monkeypatch.setattr(setup, "_build", lambda *found: built.append(found))
    monkeypatch.setattr(setup, "ENVIRONMENT", tmp_path / "venv")
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))

    assert setup._make() == 1

    assert "missing' cannot be written (No such file or directory)" in capsys.readouterr().err
    assert built == []


def test_a_cache_that_can_be_written_is_enough(tmp_path, monkeypatch):
    (tmp_path / ".cache").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))

    assert setup.unwritable_home() is None
