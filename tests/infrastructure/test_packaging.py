"""The deployed packages: their files, their bytecode and reproducible builds."""

import ast
import functools
import importlib.util
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from importlib import metadata
from pathlib import Path

import pytest

from stacks.settings.choices import CAPABILITIES
from stacks.settings.config import Config
from stacks.shared import packaging


def contents(folder: Path) -> dict[str, str]:
    """Return the SHA-256 hash of every file in a folder by relative path."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest() for path in files}


HERE, LAMBDA = packaging.target(local=True), packaging.target(local=False)


@pytest.fixture(scope="module")
def code(tmp_path_factory) -> Path:
    return packaging.code(Config(), HERE, cache=tmp_path_factory.mktemp("code")).path


def test_two_builds_of_the_code_are_byte_for_byte_equal(code, tmp_path):
    again = packaging.code(Config(), HERE, cache=tmp_path).path

    assert contents(again) == contents(code)


def test_the_code_holds_handlers_and_core_but_neither_command_nor_emulator(code):
    names = contents(code)

    assert {"lambdas/rendezvous/offer.py", "signalbox/rendezvous/model/states.py"} <= set(names)
    assert not [name for name in names if name.startswith(("signalbox/cli", "signalbox/kombu", "signalbox/local"))]
    page = {name for name in names if name.startswith("web/")}
    assert page == {f"web/{path.name}" for path in (packaging.ROOT / "web").iterdir()}
    assert {Path(name).suffix for name in names.keys() - page} == {".py", ".pyc"}
    assert {name.split("/")[0] for name in names} == {"lambdas", "signalbox", "web"}


def test_every_module_ships_with_bytecode_that_is_not_checked_against_its_source(code):
    for source in code.rglob("*.py"):
        compiled = Path(importlib.util.cache_from_source(str(source))).read_bytes()
        assert compiled[:4] == importlib.util.MAGIC_NUMBER, source
        assert int.from_bytes(compiled[4:8], "little") == 0b01, source  # PEP 552: by hash, unchecked


def test_bytecode_is_written_by_the_python_of_the_functions_or_not_at_all(tmp_path, monkeypatch):
    for name in ("python9.1", "python9.2"):
        (tmp_path / name).write_text(
            "#!/bin/sh\nexit 127\n" if name == "python9.2" else f'#!/bin/sh\nexec {sys.executable} "$@"\n'
        )
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    assert packaging.interpreter("9.1") == str(tmp_path / "python9.1")
    for missing in ("9.2", "9.3"):
        built = packaging.code(Config(), packaging.target(local=False, python=missing), cache=tmp_path / "cache")
        assert {path.suffix for path in (built.path / "lambdas").rglob("*.*")} == {".py"}
    compiled = packaging.code(Config(), packaging.target(local=False, python="9.1"), cache=tmp_path / "cache")
    assert list(compiled.path.rglob("*.pyc"))


def test_settings_files_of_the_stage_ship_with_the_code(tmp_path):
    bridges, countries = tmp_path / "mine.jsonl", tmp_path / "mine.mmdb"
    bridges.write_text("{}")
    countries.write_bytes(b"\x00")
    config = Config(bridge_list_file=bridges, country_database_file=countries)

    built = packaging.code(config, HERE, cache=tmp_path / "cache")

    assert (built.path / "settings" / "bridges.jsonl").read_text() == "{}"
    assert (built.path / "settings" / "country.mmdb").read_bytes() == b"\x00"
    assert built.digest != packaging.code(Config(), HERE, cache=tmp_path / "cache").digest


def test_a_build_is_cached_and_leaves_no_partial_result(tmp_path):
    first = packaging.code(Config(), HERE, cache=tmp_path)
    marker = first.path / "marker"
    marker.touch()

    assert packaging.code(Config(), HERE, cache=tmp_path) == first
    assert marker.exists()
    assert [path.name for path in tmp_path.iterdir()] == [first.path.name]


def test_concurrent_builds_give_one_result(tmp_path):
    program = "import sys; from pathlib import Path; from stacks.settings.config import Config; "
    program += "from stacks.shared import packaging; "
    program += "print(packaging.code(Config(), packaging.target(local=True), cache=Path(sys.argv[1])).path)"
    command = [sys.executable, "-c", program, str(tmp_path)]
    both = [
        subprocess.Popen(command, cwd=packaging.ROOT, stdout=subprocess.PIPE, text=True)  # noqa: S603  # our own build
        for _ in range(2)
    ]
    paths = {process.communicate()[0].strip() for process in both}

    assert [process.returncode for process in both] == [0, 0]
    assert len(paths) == 1
    assert [path.name for path in tmp_path.iterdir()] == [Path(paths.pop()).name]


def wheel(folder: Path, *, tag: str, module: str) -> str:
    """Write a wheel with one module and a script; return its hash."""
    path = folder / f"tiny-1.0-py3-none-{tag}.whl"
    about = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-{tag}\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny.py", module)
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr("tiny-1.0.dist-info/WHEEL", about)
        archive.writestr("tiny-1.0.dist-info/entry_points.txt", "[console_scripts]\ntiny = tiny:main\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    return sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def lock(tmp_path, monkeypatch) -> Path:
    """Return the lock file of a package with wheels on disk for Lambda and for any machine."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    body = "KINDS = {'a', 'b', 'c', 'd'}\n\ndef main(kind):\n    return kind in {'a', 'b', 'c', 'd'}\n"
    hashes = [
        wheel(wheels, tag="manylinux_2_28_aarch64", module=f"{body}\nBUILT_FOR = 'lambda'\n"),
        wheel(wheels, tag="any", module=f"{body}\nBUILT_FOR = 'any'\n"),
    ]
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setattr(packaging, "COMMON", ("tiny",))
    path = tmp_path / "requirements.lock"
    path.write_text(" ".join(["tiny==1.0", *(f"--hash=sha256:{digest}" for digest in hashes)]))
    return path


def test_two_builds_of_the_packages_are_byte_for_byte_equal(lock, tmp_path):
    first = packaging.packages((), LAMBDA, lock=lock, cache=tmp_path / "first")
    second = packaging.packages((), LAMBDA, lock=lock, cache=tmp_path / "second")

    assert first.digest == second.digest
    assert contents(first.path) == contents(second.path)


def test_packages_are_built_for_lambda_or_for_this_machine(lock, tmp_path):
    theirs = packaging.packages((), LAMBDA, lock=lock, cache=tmp_path)
    ours = packaging.packages((), HERE, lock=lock, cache=tmp_path)

    mine = "lambda" if (platform.system(), platform.machine()) == ("Linux", "aarch64") else "any"
    assert "BUILT_FOR = 'lambda'" in (theirs.path / "python" / "tiny.py").read_text()
    assert f"BUILT_FOR = {mine!r}" in (ours.path / "python" / "tiny.py").read_text()
    assert theirs.digest != ours.digest


def test_packages_ship_with_bytecode_and_without_scripts(lock, tmp_path):
    built = packaging.packages((), HERE, lock=lock, cache=tmp_path)
    names = {path.relative_to(built.path).parts[:2] for path in built.path.rglob("*")}

    assert Path(importlib.util.cache_from_source(str(built.path / "python" / "tiny.py"))).exists()
    assert names == {("python",), ("python", "tiny.py"), ("python", "__pycache__"), ("python", "tiny-1.0.dist-info")}


# The newest symbol versions of the C and C++ libraries of Amazon Linux 2023 (glibc 2.34, GCC 11), from libstdc++'s
# «ABI Policy».
AMAZON_LINUX_2023 = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13)}
SYMBOL_VERSION = re.compile(rb"\b(GLIBC|GLIBCXX|CXXABI)_(\d+(?:\.\d+)+)\b")


def needed_versions(library: bytes) -> list[tuple[str, tuple[int, ...]]]:
    """Return the versions of system libraries whose symbols a shared object needs."""
    found = SYMBOL_VERSION.findall(library)
    return [(name.decode(), tuple(map(int, version.split(b".")))) for name, version in found]


def test_the_largest_layer_is_small_and_all_its_libraries_load_in_the_runtime(tmp_path):
    built = packaging.packages(CAPABILITIES, LAMBDA, cache=tmp_path / "cache").path

    archive = Path(shutil.make_archive(str(tmp_path / "layer"), "zip", built))
    assert archive.stat().st_size <= 20_000_000

    libraries = {path: path.read_bytes() for path in built.rglob("*.so*")}
    assert libraries
    for path, library in libraries.items():
        needed = needed_versions(library)
        assert "GLIBC" in dict(needed), path
        assert all(version <= AMAZON_LINUX_2023[name] for name, version in needed), path
        assert library[18:20] == b"\xb7\x00", path  # EM_AARCH64 of the ELF specification


def test_a_package_that_differs_from_its_lock_is_refused(lock, tmp_path):
    lock.write_text(f"tiny==1.0 --hash=sha256:{'0' * 64}")

    with pytest.raises(packaging.PackagingError, match=r"uv pip failed: (?s:.*)[Hh]ash"):
        packaging.packages((), HERE, lock=lock, cache=tmp_path)


def test_glue_modules_ship_under_the_package_name_that_scripts_import():
    names = contents(packaging.glue_modules().path)

    assert {"glue_jobs/__init__.py", "glue_jobs/transforms/rendezvous.py"} <= set(names)
    assert {name for name in names if not name.startswith("glue_jobs/")} == set(packaging.PRICE_LIST)


def test_the_lock_pins_every_package_by_hash_and_names_no_registry():
    lines = [line for line in packaging.LOCK.read_text().splitlines() if line and not line.lstrip().startswith("#")]
    packages = [line for line in lines if not line.startswith(" ")]

    assert all("==" in line for line in packages)
    assert all(line.strip().startswith("--hash=sha256:") for line in lines if line.startswith(" "))
    assert "://" not in packaging.LOCK.read_text()
    assert "index-url" not in packaging.LOCK.read_text()


def test_every_required_package_is_locked():
    required = (packaging.ROOT / "lambdas" / "requirements.in").read_text().splitlines()
    names = [re.split("[>=]", line)[0] for line in required if line and not line.startswith("#")]

    assert names
    assert all(f"\n{name}==" in packaging.LOCK.read_text() for name in names)


def test_a_failed_build_reports_the_reason_and_leaves_no_files(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uv", None)

    with pytest.raises(packaging.PackagingError, match="uv is not installed for"):
        packaging.packages((), HERE, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def imported_by(part: str) -> set[str]:
    """Return the distributions that the modules of a capability import, at once or later, with what they require."""
    found, waiting = set[str](), [f"lambdas.{part}.{path.stem}" for path in (ROOT / "lambdas" / part).glob("*.py")]
    outside = set[str]()
    while waiting:
        module = waiting.pop()
        file = next((one for one in files_of(module) if one.is_file()), None)
        if module in found or file is None:
            continue
        found.add(module)
        for name in imports_of(file):
            if name.startswith(("lambdas", "signalbox")):
                waiting += [name, name.rpartition(".")[0]]
            else:
                outside.add(name.partition(".")[0])
    distributions = metadata.packages_distributions()
    named = {one for name in outside for one in distributions.get(name, ())}
    return with_required({re.sub("[-_.]+", "-", one).lower() for one in named} & set(LOCKED))


def files_of(module: str) -> Iterator[Path]:
    path = ROOT / module.replace(".", "/")
    yield from (path.with_suffix(".py"), path / "__init__.py")


@functools.cache  # most capabilities share most of their modules
def imports_of(file: Path) -> set[str]:
    found = set[str]()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def with_required(names: set[str]) -> set[str]:
    """Add the locked packages that packages require; PyJWT needs its extra for signatures of public keys."""
    required = {
        re.split(r"[^\w-]", one)[0]
        for name in names
        for one in metadata.requires(name) or ()
        if "extra ==" not in one or re.search("extra == .crypto.", one)
    }
    more = names | (required & set(LOCKED))
    return names if more == names else with_required(more)


ROOT = packaging.ROOT
LOCKED = re.findall(r"^([a-z][\w-]*)==", packaging.LOCK.read_text(), re.MULTILINE)


@pytest.mark.parametrize("part", CAPABILITIES)
def test_the_layer_of_a_capability_brings_the_packages_that_it_imports_and_no_others(part):
    assert imported_by(part) == {*packaging.COMMON, *packaging.PACKAGES_OF[part]}
